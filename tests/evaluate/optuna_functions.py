#!/usr/bin/python3
"""Optuna's TPE as one more searcher of the table `bayes`, asked over its standard input and output.

First line written: "optuna VERSION", or "absent" and the end. Then, for each line read:
    open DIMENSIONS SEED    a new study on the unit cube; nothing is written
    ask                     the next point, DIMENSIONS numbers
    tell VALUE              of that point, to be small; nothing is written
"""
import sys
import warnings


def words():
    for line in sys.stdin:
        yield line.split()


def serve(optuna):
    study = trial = None
    dimensions = 0
    for word, *rest in words():
        if word == "open":
            dimensions = int(rest[0])
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=int(rest[1])))
        elif word == "ask":
            trial = study.ask()
            print(*(repr(trial.suggest_float(f"x{k}", 0, 1)) for k in range(dimensions)), flush=True)
        else:
            study.tell(trial, float(rest[0]))


def main():
    warnings.simplefilter("ignore")
    try:
        import optuna
    except ImportError:
        print("absent", flush=True)
        return
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print("optuna", optuna.__version__, flush=True)
    serve(optuna)


main()
