/* See schemas.h. What a schema cannot say (a graph without cycles, servers that the cluster has) the readers of
 * strategy/ check, and answer 422 with a JSON pointer. */
#include "service/http/api/schemas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSISTENCY                                                                                                    \
    "{'type':'object','required':['kind'],'additionalProperties':false,"                                               \
    "'description':'How far workers may drift apart; without it training is synchronous','properties':{"               \
    "'kind':{'enum':['synchronous','stale_synchronous','asynchronous']},'staleness':" COUNT ",'delay_bound':" SIZE     \
    ",'scheduler':{'type':'object','additionalProperties':false,'properties':{'batch_us':" AMOUNT ","                  \
    "'order':{'enum':['mlfabric','slots']},'aggregators':" TEXTS ",'distributors':" COUNT "}},"                        \
    "'replica':{'type':'object','required':['node','divergence'],'additionalProperties':false,'properties':{"          \
    "'node':" TEXT ",'divergence':" AMOUNT ",'momentum':" AMOUNT ",'copies':{'enum':['early','due']},"                 \
    "'aggregators':" TEXTS "}}}}"
#define ENCODING                                                                                                       \
    "{'description':'How the gradient travels: a word, or an object of an encoder','oneOf':["                          \
    "{'enum':['none','f16','bf16','int8','topk','powersgd']},"                                                         \
    "{'type':'object','required':['kind'],'additionalProperties':false,'properties':{'kind':{'const':'int8'},"         \
    "'block_size':{'type':'integer','minimum':8,'maximum':65536,'default':256}}},"                                     \
    "{'type':'object','required':['kind'],'additionalProperties':false,'properties':{'kind':{'const':'topk'},"         \
    "'part':{'type':'number','minimum':0.000001,'maximum':0.5,'default':0.01}}},"                                      \
    "{'type':'object','required':['kind'],'additionalProperties':false,'properties':{'kind':{'const':'powersgd'},"     \
    "'rank':{'type':'integer','minimum':1,'maximum':256,'default':1}}}]}"
#define SYNC                                                                                                           \
    "{'type':'object','required':['kind'],'additionalProperties':false,'properties':{"                                 \
    "'kind':{'enum':['all_reduce','parameter_server']},'group':" COUNT ",'servers':" TEXTS ","                         \
    "'local_reduction':" FLAG ",'partition_bytes':" SIZE ",'push':" SIZE "}}"
#define ID           "{'type':'string','pattern':'^[0-9a-f]{64}$'}"
#define STAMP        "{'type':'string','pattern':'^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]{3}Z$'}"
#define TEXT         "{'type':'string','minLength':1,'maxLength':4096}"
#define NUMBER       "{'type':'number'}"
#define AMOUNT       "{'type':'number','minimum':0}"
#define RATE         "{'type':'number','exclusiveMinimum':0}"
#define COUNT        "{'type':'integer','minimum':0}"
#define SIZE         "{'type':'integer','minimum':1}"
#define FLAG         "{'type':'boolean'}"
#define TEXTS        "{'type':'array','items':" TEXT "}"
#define WORDS(about) "{'type':'array','maxItems':32,'items':" TEXT ",'description':'" about "'}"
#define NAMED                                                                                                          \
    "{'type':'object','required':['id','name'],'additionalProperties':false,'properties':{'id':" ID ",'name':" TEXT "}}"
#define REFERENCE(schema)                                                                                              \
    "{'description':'A whole id, 4 or more first digits of one, a name, or the description itself','oneOf':[" TEXT     \
    ",{'$ref':'#/components/schemas/" schema "'}]}"
#define ALGORITHM_WORDS "'auto','ring','tree','double_tree','recursive_doubling','halving_doubling','hierarchical'"
#define OPTIMIZER_WORDS "{'enum':['sgd','momentum','adagrad','rmsprop','lion','adam','adamw','lamb','adafactor']}"
#define ALGORITHMS      "{'enum':[" ALGORITHM_WORDS "]}"
#define ABILITIES(about)                                                                                               \
    "{'type':'array','minItems':1,'maxItems':8,'items':{'enum':[" ALGORITHM_WORDS ",'all_gather']},'description':'"    \
    "All that " about " can execute, at least one of them an all-reduce; the session tries nothing else'}"

#define MODE   "{'enum':['own','ask'],'default':'ask'}"
#define CLIENT "{'type':'string','minLength':1,'maxLength':64}"
#define RUNNER                                                                                                         \
    "{'type':'string','minLength':1,'maxLength':4096,'description':'What ran the trial; left out, the runner of the "  \
    "session'}"
#define LEASE "{'type':'number','minimum':1,'maximum':86400}"
#define TIMES "{'type':'array','maxItems':100000,'items':" RATE "}"
/* The next schemas are for numbers that clients send; those above are for numbers in answers. */
#define TOLD_US        "{'type':'number','minimum':0.001,'maximum':1e13}"
#define REPORTED_TIMES "{'type':'array','maxItems':100000,'items':" TOLD_US "}"
#define TOLD_SEED      "{'type':'integer','minimum':0,'maximum':9007199254740992}"
#define SHARED         "{'oneOf':[{'enum':['all','team']},{'type':'array','maxItems':64,'items':" TEXT "}]}"
#define BUDGET                                                                                                         \
    "{'type':'object','description':'0 is no limit; one of trials and time_us is "                                     \
    "needed','additionalProperties':false,"                                                                            \
    "'properties':{'trials':{'type':'integer','minimum':0,'maximum':100000},'time_us':{'type':'number','minimum':0,'"  \
    "maximum':1e13},'gap':{'type':'number','minimum':0,'maximum':100}}}"
#define MEASURED                                                                                                       \
    "{'type':'object','required':['strategy_id','name','measured_us','iterations','final'],"                           \
    "'additionalProperties':false,'properties':{'strategy_id':" ID ",'name':" TEXT ",'measured_us':" RATE              \
    ",'low_us':" RATE ",'high_us':" RATE ",'p95_us':" RATE ",'iterations':" SIZE ",'final':" FLAG "}}"

/* What the simulator expects of a strategy in weather. */
#define EXPECTED                                                                                                       \
    "{'type':'object','required':['mean_us','p95_us','seeds','until_us','iterations'],"                                \
    "'additionalProperties':false,'properties':{'mean_us':" RATE ",'low_us':" RATE ",'high_us':" RATE                  \
    ",'p95_us':" RATE ",'seeds':" SIZE ",'until_us':" AMOUNT ",'iterations':" COUNT "}}"

/* What the simulator expects of whole updates. */
#define UPDATES                                                                                                        \
    "{'type':'object','description':'Of a strategy with a consistency, whose iteration_us is a round: the time in "    \
    "which as many updates are applied as there are workers. delays: how many updates had delay 0, 1, ...; dropped: "  \
    "at the worker, by the scheduler; late: by the server','required':['delays','simulated_us','applied','dropped',"   \
    "'late','delay_mean','delay_variance','delay_most','worker_iteration_us'],'additionalProperties':false,"           \
    "'properties':{'delays':{'type':'array','maxItems':512,'items':" AMOUNT "},'simulated_us':" AMOUNT                 \
    ",'applied':" AMOUNT ",'dropped':" AMOUNT ",'late':" AMOUNT ",'delay_mean':" AMOUNT ",'delay_variance':" AMOUNT    \
    ",'delay_most':" COUNT ",'worker_iteration_us':" AMOUNT ",'server_in_bytes':" AMOUNT ",'server_out_bytes':" AMOUNT \
    ",'replica_bytes':" AMOUNT ",'divergence_most':" AMOUNT ",'between_bytes':" AMOUNT ",'transfers_between':" COUNT   \
    ",'slow_transfers_between':" COUNT "}}"

/* A strategy in an Outcome. */
#define TRIED                                                                                                          \
    "{'type':'object','required':['strategy','name','trials','complete','final'],'additionalProperties':false,"        \
    "'properties':{'strategy':" ID ",'name':" TEXT ",'proposer':" TEXT ",'trials':" SIZE ",'complete':" COUNT          \
    ",'predicted_us':" RATE ",'final':" FLAG ",'early':" FLAG ",'measured_us':" RATE ",'low_us':" RATE                 \
    ",'high_us':" RATE ",'p95_us':" RATE ",'quiet_us':" RATE ",'in_weather':" EXPECTED ",'iterations':" SIZE           \
    ",'state':{'enum':['waiting','running','complete','failed',"                                                       \
    "'infeasible','cancelled']},'reason':" TEXT "}}"

#define RATIO                                                                                                          \
    "{'type':'object','required':['mean','rounds'],'additionalProperties':false,'properties':{'mean':" RATE            \
    ",'low':" RATE ",'high':" RATE ",'rounds':" SIZE "}}"
#define LEARNING                                                                                                       \
    "{'type':'object','required':['trials','reached'],'additionalProperties':false,'properties':{'trials':" COUNT      \
    ",'reached':" COUNT ",'updates':" AMOUNT ",'time_us':" AMOUNT ",'last':" AMOUNT "}}"
#define STALE                                                                                                          \
    "{'type':'object','description':'Of a session with allow_stale: the strategy of updates with the shortest "        \
    "rounds, "                                                                                                         \
    "how many times as long an iteration of the best takes, the delays of its updates, and what workers learned: a "   \
    "small task, at this rate and momentum, until so many updates were applied. last is the loss then. Of "            \
    "synchronous "                                                                                                     \
    "training time_us is what the best strategy takes; gain: that over the time of the stale "                         \
    "one','required':['allowed'],'additionalProperties':false,'properties':{'allowed':" SIZE ",'best':" TRIED          \
    ",'speedup':" RATIO ",'delay_mean':" AMOUNT ",'delay_variance':" AMOUNT ",'delay_largest':" AMOUNT                 \
    ",'dropped_share':" AMOUNT ",'training':{'type':'object','required':['target','stale','synchronous'],"             \
    "'additionalProperties':false,'properties':{'rate':" RATE ",'momentum':" AMOUNT ",'first':" AMOUNT                 \
    ",'least':" AMOUNT ",'target':" AMOUNT ",'updates':" AMOUNT ",'stale':" LEARNING ",'synchronous':" LEARNING        \
    ",'gain':" RATIO "}}}}"

#define LESSONS                                                                                                        \
    "'knobs':{'type':'array','description':'empty: too few trials to tell','items':{'type':'object',"                  \
    "'required':['name','importance'],'additionalProperties':false,'properties':{'name':" TEXT ",'importance':" AMOUNT \
    "}}},'proposers':{'type':'array','items':{'type':'object','required':['name','trials','wins'],"                    \
    "'additionalProperties':false,'properties':{'name':" TEXT ",'trials':" COUNT ",'wins':" COUNT "}}}"

/* What a trial that ended elsewhere has, beside model and cluster. The last six are of the dataset it comes from. */
#define UID "{'type':'string','pattern':'^[A-Za-z0-9._-]{1,64}$'}"
#define ENDED_TRIAL                                                                                                    \
    "'uid':" UID ",'strategy':" TEXT ",'round':{'type':'integer','minimum':0,'maximum':1048576},'seed':" TOLD_SEED     \
    ",'proposer':" TEXT ",'runner':" TEXT                                                                              \
    ",'state':{'enum':['complete','failed','infeasible','cancelled'],'default':'complete'},'reason':" TEXT             \
    ",'attempt':{'type':'integer','minimum':1,'maximum':1000},'queued':" STAMP ",'started':" STAMP ",'ended':" STAMP   \
    ",'predicted_us':" TOLD_US ",'mean_us':" TOLD_US ",'median_us':" TOLD_US ",'low_us':" TOLD_US                      \
    ",'high_us':" TOLD_US ",'iterations_us':" REPORTED_TIMES                                                           \
    ",'environment_details':{'type':'object'},'schema':{'const':'syncopate.record/1'},'trial':" SIZE                   \
    ",'environment':" ID ",'model_name':" TEXT ",'cluster_name':" TEXT ",'strategy_name':" TEXT
#define PART "{'oneOf':[" COUNT ",{'type':'null'}]}"
#define MEMORY                                                                                                         \
    "{'type':'object','description':'The most that a device holds at once, however slow the network is, and of what; " \
    "null is not known','required':['peak_bytes','at','fits'],'additionalProperties':false,'properties':{"             \
    "'peak_bytes':" COUNT ",'at':" TEXT ",'parameters_bytes':" PART ",'gradients_bytes':" PART                         \
    ",'optimizer_bytes':" PART ",'gathered_bytes':" PART ",'buffers_bytes':" PART ",'encoding_bytes':" PART            \
    ",'activations_bytes':" PART ",'temporary_bytes':" COUNT ",'server':" TEXT ",'server_bytes':" COUNT                \
    ",'budget_bytes':" COUNT ",'activations_estimated':" FLAG ",'fits':" FLAG "}}"
#define BATCH(member, trial) "'" member "':{'type':'array','minItems':1,'maxItems':1000,'items':" trial "}"
#define SHARE                "{'type':'number','minimum':0,'maximum':1}"
#define LOSSES                                                                                                         \
    "{'type':'array','description':'what the form cannot express','items':{'type':'object',"                           \
    "'required':['what','why'],'additionalProperties':false,'properties':{'what':" TEXT ",'why':" TEXT "}}}"

#define LIST(schema)                                                                                                   \
    "{'type':'object','required':['items','next_page_token'],'additionalProperties':false,'properties':{"              \
    "'items':{'type':'array','items':{'$ref':'#/components/schemas/" schema "'}},"                                     \
    "'next_page_token':{'type':'string','description':'empty after the last page'},"                                   \
    "'note':{'type':'string','minLength':1,'description':'only where items is empty: why, and what to do'}}}"

static const struct schema schemas[] = {
    {"Health", "{'type':'object','required':['status','version'],'additionalProperties':false,"
               "'properties':{'status':{'const':'ok'},'version':" TEXT "}}"},
    {"OpenApi", "{'type':'object','required':['openapi','info','paths']}"},
    {"Problem",
     "{'type':'object','description':'RFC 9457','required':['type','title','status','detail','code','request_id'],"
     "'additionalProperties':false,'properties':{'type':{'type':'string','pattern':'^/problems/[a-z-]+$'},"
     "'title':" TEXT ",'status':{'type':'integer','minimum':400,'maximum':599},'detail':{'type':'string'},"
     "'code':{'type':'string','pattern':'^[a-z-]+$'},'request_id':{'type':'string'},"
     "'errors':{'type':'array','items':{'type':'object','required':['pointer','detail'],'additionalProperties':false,"
     "'properties':{'pointer':{'type':'string'},'detail':{'type':'string'}}}},'losses':" LOSSES "}}"},
    {"Object",
     "{'type':'object','required':['id','name','created','href'],'additionalProperties':false,"
     "'properties':{'id':" ID ",'name':" TEXT ",'created':" STAMP ",'href':{'type':'string','pattern':'^/api/v1/'}}}"},
    {"ObjectList", LIST("Object")},
    {"Model",
     "{'type':'object','description':'One training iteration on one device; operators or layers',"
     "'required':['schema','name','variables'],'additionalProperties':false,"
     "'properties':{'schema':{'const':'syncopate.model/1'},'name':" TEXT ",'batch_per_device':" RATE ","
     "'optimizer':{'oneOf':[" OPTIMIZER_WORDS ",{'type':'object','additionalProperties':false,'properties':{"
     "'name':" OPTIMIZER_WORDS ",'master_copy':" FLAG ",'bytes_per_element':" AMOUNT "}}]},'update_us':" AMOUNT
     ",'activations_estimated':" FLAG ","
     "'variables':{'type':'array','minItems':1,'maxItems':200000,'items':{'type':'object','required':['name','shape'],"
     "'additionalProperties':false,'properties':{'name':" TEXT ",'shape':{'type':'array','maxItems':8,'items':" SIZE
     "},"
     "'dtype':{'enum':['f32','f16','bf16','f64','i32','i64','u8']},'sparse_rows':" SIZE "}}},"
     "'operators':{'type':'array','items':{'type':'object','required':['name','phase','time_us'],"
     "'additionalProperties':false,'properties':{'name':" TEXT ",'phase':{'enum':['forward','backward']},"
     "'time_us':" AMOUNT ",'after':" TEXTS ",'reads':" TEXTS ",'produces':" TEXTS ",'activation_bytes':" COUNT
     ",'kept_for':" TEXT ",'temporary_bytes':" COUNT "}}},"
     "'layers':{'type':'array','items':{'type':'object','required':['name','forward_us','backward_us'],"
     "'additionalProperties':false,'properties':{'name':" TEXT ",'forward_us':" AMOUNT ",'backward_us':" AMOUNT
     ",'variables':" TEXTS ",'activation_bytes':" COUNT ",'temporary_bytes':" COUNT "}}}}}"},
    {"Cluster",
     "{'type':'object','description':'Nodes, devices, links, and what was measured on them',"
     "'required':['schema','name','nodes'],'additionalProperties':false,"
     "'properties':{'schema':{'const':'syncopate.cluster/1'},'name':" TEXT ","
     "'transport':{'enum':['ideal','nccl','mpi','gloo','ps-lite']},"
     "'nodes':{'type':'array','minItems':1,'items':{'type':'object','required':['name','nic_gbit_per_s'],"
     "'additionalProperties':false,'properties':{'name':" TEXT ",'count':" SIZE ",'devices':" COUNT ",'device':" TEXT
     ","
     "'nic_gbit_per_s':" RATE ",'nic_latency_us':" AMOUNT ",'device_link_gbyte_per_s':" RATE ",'compute_scale':" RATE
     ",'device_memory_gbyte':" RATE ",'memory_gbyte':" RATE
     "}}},'links':{'type':'array','items':{'type':'object','required':['from','to','gbit_per_s'],"
     "'additionalProperties':false,'properties':{'from':" TEXT ",'to':" TEXT ",'gbit_per_s':" RATE "}}},"
     "'variability':{'type':'object'},'collectives':{'type':'object'},'runtime':{'type':'object','additionalProperties'"
     ":" AMOUNT "},"
     "'measurements':{'type':'array','items':{'type':'object','required':['operation','bytes','time_us'],"
     "'additionalProperties':false,'properties':{'operation':{'enum':['all_reduce','push','pull','reduce_scatter','all_"
     "gather']},"
     "'algorithm':" ALGORITHMS ",'devices':" SIZE ",'bytes':" SIZE ",'time_us':" RATE ",'low_us':" AMOUNT
     ",'high_us':" AMOUNT "}}}}}"},
    {"Strategy",
     "{'type':'object','description':'How each gradient is synchronized','required':['schema','schedule','variables'],"
     "'additionalProperties':false,'properties':{'schema':{'const':'syncopate.strategy/1'},'name':" TEXT ","
     "'schedule':{'type':'object','required':['policy'],'additionalProperties':false,"
     "'properties':{'policy':{'enum':['fifo','priority','preemptive']},'credit_bytes':" COUNT ",'cross_iteration':" FLAG
     ",'pulls':{'enum':['at_once','priority']},'forward_prefetch':" COUNT ",'backward_prefetch':" COUNT
     ",'shard_ranks':{'type':'integer','minimum':2},"
     "'accumulation':{'type':'object','required':['micro_batches'],'additionalProperties':false,"
     "'properties':{'micro_batches':" SIZE ",'synchronize':{'enum':['last','each','each_all_reduce_last']}}},"
     "'slices':{'type':'array','items':{'type':'object','required':['group','bytes'],'additionalProperties':false,"
     "'properties':{'group':" COUNT ",'bytes':" SIZE "}}}}},"
     "'consistency':" CONSISTENCY ","
     "'groups':{'type':'array','items':{'type':'object','required':['id'],'additionalProperties':false,"
     "'properties':{'id':" COUNT ",'algorithm':{'enum':[" ALGORITHM_WORDS ",'all_gather']},"
     "'partition_bytes':" SIZE ",'sharded':{'enum':['none','optimizer','gradients','parameters']},"
     "'reshard_after_forward':{'oneOf':[" FLAG "," SIZE "]},'gathered_as':{'enum':['f32','f16','bf16']},"
     "'summed_as':{'enum':['f32','f16','bf16']}}}},"
     "'variables':{'type':'array','items':{'type':'object','required':['name'],'additionalProperties':false,"
     "'description':'Either sync, with or without encoding, or each_shard','properties':{'name':" TEXT
     ",'encoding':" ENCODING ",'partition':{'type':'object','required':['shards'],'additionalProperties':false,"
     "'properties':{'axis':" COUNT ",'shards':" SIZE "}},"
     "'sync':" SYNC ",'each_shard':{'type':'array','items':{'type':'object','required':['sync'],"
     "'additionalProperties':false,'properties':{'encoding':" ENCODING ",'sync':" SYNC "}}}}}}}}"},
    {"NewStrategy",
     "{'type':'object','description':'Either a strategy or the name of a baseline','required':['model','cluster'],"
     "'additionalProperties':false,'properties':{'model':" REFERENCE("Model") ",'cluster':" REFERENCE(
         "Cluster") ","
                    "'strategy':" REFERENCE("Strategy") ",'baseline':" TEXT "}}"},
    {"TraceUpload",
     "{'type':'object','description':'PyTorch profiler traces (export_chrome_trace) of the same iterations, one a "
     "rank',"
     "'required':['trace'],'additionalProperties':false,'properties':{'trace':{'type':'array','minItems':1,'maxItems':"
     "4096,'items':{'type':'string','format':'binary'}}}}"},
    {"Explanation",
     "{'type':'object','description':'Times in microseconds, of an iteration where nothing else is said','required':["
     "'schema','iteration_us','most_won_us','late_rank','clock_us','collectives','unmatched','partial','ranks','costs']"
     ","
     "'additionalProperties':false,'properties':{'schema':{'const':'syncopate.explanation/1'},'iteration_us':" AMOUNT
     ",'most_won_us':" AMOUNT ",'late_rank':{'oneOf':[" COUNT ",{'type':'null'}]},'clock_us':" AMOUNT
     ",'collectives':" COUNT ",'unmatched':" COUNT ",'partial':" COUNT
     ",'ranks':{'type':'array','items':{'type':'object','required':['rank','file','iterations','iteration_us',"
     "'compute_us','exposed_us','waiting_us','idle_us','hidden_us','collectives','last','last_by_us','held_up_us'],"
     "'additionalProperties':false,'properties':{'rank':" COUNT ",'file':{'type':'string'},'iterations':" SIZE
     ",'iteration_us':" AMOUNT ",'compute_us':" AMOUNT ",'exposed_us':" AMOUNT ",'waiting_us':" AMOUNT
     ",'idle_us':" AMOUNT ",'hidden_us':" NUMBER ",'collectives':" COUNT ",'last':" COUNT ",'last_by_us':" AMOUNT
     ",'held_up_us':" AMOUNT "}}},'costs':{'type':'array','items':{'type':'object','required':['operation','devices',"
     "'bytes','time_us','low_us','high_us','times','alone','beside_compute'],'additionalProperties':false,'properties':"
     "{"
     "'operation':" TEXT ",'devices':" COUNT ",'bytes':" SIZE ",'time_us':" AMOUNT ",'low_us':" AMOUNT
     ",'high_us':" AMOUNT ",'times':" SIZE ",'alone':" FLAG ",'beside_compute':" AMOUNT "}}}}}"},
    {"PredictionRequest",
     "{'type':'object','description':'At most 10,000 strategies and baselines, 16 with timelines',"
     "'required':['model','cluster'],'additionalProperties':false,"
     "'properties':{'model':" REFERENCE("Model") ",'cluster':" REFERENCE(
         "Cluster") ","
                    "'strategies':{'type':'array','maxItems':10000,'items':" REFERENCE(
                        "Strategy") "},"
                                    "'baselines':{'type':'array','maxItems':10000,'items':" TEXT "},'timeline':" FLAG
                                    ",'memory':{'type':'boolean','description':'tell the memory of each'},"
                                    "'memory_bytes':{'type':'integer','minimum':1,'description':'that a device "
                                    "may have: what needs more comes last, and fsdp-optimal is wrapped for it'},"
                                    "'what_if':{'type':'object','description':'Other figures than those of the model "
                                    "and the cluster: of every NIC, of "
                                    "nodes with devices (those described are repeated), of what a device takes in an "
                                    "iteration. Stored strategies are "
                                    "for the figures as they are, so ask for "
                                    "baselines','additionalProperties':false,'properties':{"
                                    "'gbit_per_s':{'type':'number','minimum':0.001,'maximum':1000000},"
                                    "'nodes':{'type':'integer','minimum':1,'maximum':1024},"
                                    "'batch':{'type':'number','minimum':0.001,'maximum':1000000}}}}}"},
    {"AdviceRequest",
     "{'type':'object','required':['model','cluster'],'additionalProperties':false,"
     "'properties':{'model':" REFERENCE("Model") ",'cluster':" REFERENCE(
         "Cluster") ",'memory_bytes':{'type':'array','maxItems':8,'items':" SIZE ",'description':'what a device may "
                    "hold; without any, what the cluster says of its devices, and any memory'}}}"},
    {"Advice",
     "{'type':'object','required':['schema','model','cluster','lower_bound_us','candidates','answers',"
     "'smallest_memory_bytes','front','at_other_rates'],'additionalProperties':false,'properties':{'schema':{'const':'"
     "syncopate.advice/1'},"
     "'model':" TEXT ",'cluster':" TEXT ",'activations_estimated':" FLAG ",'smallest_memory_bytes':" COUNT ","
     "'lower_bound_us':{'type':'number','minimum':0,'description':'the least of those of the candidates'},"
     "'candidates':{'type':'array','description':'the fastest first, by the mean in weather where there is "
     "any','items':{'type':'object',"
     "'required':['way','strategy','id','iteration_us','exposed_us','lower_bound_us','groups','memory'],"
     "'additionalProperties':false,'properties':{'way':" TEXT ",'strategy':" TEXT ",'id':" ID ",'iteration_us':" AMOUNT
     ",'exposed_us':" NUMBER ",'lower_bound_us':" AMOUNT ",'groups':" COUNT ",'in_weather':" EXPECTED
     ",'wrapped_for_bytes':{'type':'integer','minimum':0,'description':'of fsdp-optimal: the memory; 0: as little as "
     "possible; absent: any'},'between':{'const':true,'description':'wrapped for a memory that nobody asked about'}"
     ",'memory':{'type':'object','description':'as in a prediction','required':['peak_bytes','at']}}}},"
     "'answers':{'type':'array','description':'for each memory the fastest that fits, or what takes at most 0.1% "
     "longer and needs the least; null: nothing fits',"
     "'items':{'type':'object','required':['id'],'additionalProperties':false,'properties':{'memory_bytes':" COUNT
     ",'id':{'oneOf':[" ID ",{'type':'null'}]}}}},"
     "'front':{'type':'array','description':'by rising memory those that all with no more are slower than; in weather "
     "by the mean',"
     "'items':{'type':'object','required':['id','peak_bytes','iteration_us'],'additionalProperties':false,"
     "'properties':{'id':" ID ",'peak_bytes':" COUNT ",'iteration_us':" AMOUNT "}}},"
     "'at_other_rates':{'type':'array','items':{'type':'object','required':['nic_factor','way'],"
     "'additionalProperties':false,'properties':{'nic_factor':{'type':'number','exclusiveMinimum':0,"
     "'description':'the rate of each NIC is multiplied by it'},'gbit_per_s':{'type':'number','exclusiveMinimum':0,"
     "'description':'where all NICs have the same'},'memory_bytes':" COUNT ",'way':{'oneOf':[" TEXT
     ",{'type':'null'}]},'iteration_us':" AMOUNT "}}}}}"},
    {"PredictionResponse",
     "{'type':'object','required':['schema','model','cluster','lower_bound_us','predictions','failures'],"
     "'additionalProperties':false,'properties':{'schema':{'const':'syncopate.predictions/1'},'model':" NAMED ","
     "'cluster':" NAMED ",'lower_bound_us':" AMOUNT
     ",'predictions':{'type':'array','description':'fastest first, by the mean in weather where the cluster has any',"
     "'items':{'type':'object','required':['strategy','iteration_us','compute_us','exposed_us','samples_per_s','"
     "messages'],"
     "'additionalProperties':false,'properties':{'strategy':" NAMED ",'iteration_us':" AMOUNT ",'compute_us':" AMOUNT
     ",'exposed_us':" NUMBER ",'samples_per_s':" AMOUNT ",'messages':" COUNT ",'gap':" NUMBER
     ",'lower_bound_us':{'type':'number','minimum':0,'description':'of a strategy that encodes gradients or has "
     "replicas, or of all that fit into the memory'},"
     "'in_weather':" EXPECTED ",'updates':" UPDATES ",'memory':" MEMORY
     ",'timeline':{'type':'object','description':'Chrome trace events','required':['traceEvents']}}}},"
     "'failures':{'type':'array','items':{'type':'object','required':['pointer','code','detail'],"
     "'additionalProperties':false,'properties':{'pointer':{'type':'string'},'code':{'type':'string'},"
     "'detail':{'type':'string'}}}},'weather':{'type':'object','description':'With timelines, where the cluster has "
     "weather: when and to what the rates of NICs change in that of the seed, from the NICs own rates on',"
     "'required':['seed','until_us','changes'],'additionalProperties':false,'properties':{'seed':" SIZE
     ",'until_us':" AMOUNT ",'changes':{'type':'array','items':{'type':'object','required':['at_us','node','direction',"
     "'gbit_per_s'],'additionalProperties':false,'properties':{'at_us':" AMOUNT ",'node':{'type':'string'},"
     "'direction':{'enum':['out','in']},'gbit_per_s':" AMOUNT "}}}}}}}"},
    {"SessionList", LIST("Session")},
    {"Session",
     "{'type':'object','required':['id','href','model','cluster','mode','state','seed','budget','shared','started',"
     "'trials','complete'],'additionalProperties':false,'properties':{'id':" TEXT ",'href':" TEXT ",'model':" NAMED
     ",'cluster':" NAMED ",'mode':" MODE ",'state':{'enum':['running','done','stopped','failed','paused','cancelled']},"
     "'reason':" TEXT ",'seed':" COUNT ",'budget':" BUDGET ",'weather':{'const':true,'description':'it looks for the "
     "least mean iteration in the weather of its cluster'},"
     "'memory_bytes':{'type':'integer','minimum':1,'description':'as it was opened with, as are the five that follow: "
     "NewSession; left out where nothing was said'},'allow_sharded':{'enum':['optimizer','gradients','parameters']},"
     "'allow_lossy':{'const':true},'allow_stale':{'type':'integer','minimum':1,'maximum':1000},'export_to':" WORDS(
         "forms of export") ",'accept':" WORDS("what these may lose") ",'note':{'type':'string','minLength':1,'"
                                                                      "description':'only in the answer that opens it: "
                                                                      "what of the "
                                                                      "request has no effect, and why'},'team':" TEXT
                                                                      ",'shared':" SHARED ",'started':" STAMP
                                                                      ",'ended':" STAMP ",'trials':" COUNT
                                                                      ",'complete':" COUNT "}}"},
    {"NewSession",
     "{'type':'object','description':'mode own: the service runs the trials; ask: clients do, who take "
     "them by "
     ":suggest','required':['model','cluster'],'additionalProperties':false,'properties':{'model':" TEXT
     ",'cluster':" TEXT ",'mode':" MODE ",'budget':" BUDGET ",'seed':" TOLD_SEED
     ",'final_rounds':{'type':'integer','minimum':0,'maximum':16},"
     "'trial_us':{'type':'number','minimum':1000,'maximum':3600000000},"
     "'least_gain':{'type':'number','minimum':0,'maximum':1},'earlier':{'type':'integer','minimum':0,'"
     "maximum':10000},"
     "'allow_lossy':{'type':'boolean','description':'try gradients that lose precision on their way "
     "too'},"
     "'allow_sharded':{'enum':['none','optimizer','gradients','parameters'],'description':'the most that "
     "devices may "
     "keep a part of alone; what is sharded is tried too, up to that'},"
     "'allow_stale':{'type':'integer','minimum':1,'maximum':1000,'description':'try strategies of "
     "updates too, after "
     "the "
     "search: models are stale by at most so many versions, or iterations where workers wait for the "
     "slowest'},"
     "'memory_bytes':{'type':'integer','minimum':1,'description':'try only what needs at most so much "
     "memory of a "
     "device; left out, what the cluster says its devices have'},"
     "'weather':{'type':'boolean','description':'look for the least mean iteration in the weather of the "
     "cluster, "
     "which "
     "must have variability; without it such a cluster is refused'},"
     "'export_to':" WORDS(
         "try only what these forms of export (pytorch-ddp, horovod, ...) say without a "
         "loss") ",'accept':" WORDS("what these forms may lose, since the job does it "
                                    "by itself, such as groups; only beside "
                                    "export_to") ",'algorithms':" ABILITIES("who runs the trials") ",'ranker':" TEXT
                                                                                                   ",'runner':" TEXT
                                                                                                   ",'shared':" SHARED
                                                                                                   "}}"},
    {"SessionChange", "{'type':'object','minProperties':1,'additionalProperties':false,"
                      "'properties':{'budget':" BUDGET ",'shared':" SHARED "}}"},
    {"RecordList", LIST("Record")},
    {"Record",
     "{'type':'object','description':'A trial','required':['schema','trial','uid','round','model','cluster','strategy',"
     "'proposer','runner','seed','state','queued','shared','attempt'],'additionalProperties':false,"
     "'properties':{'schema':{'const':'syncopate.record/1'},'trial':" SIZE ",'uid':" TEXT ",'session':" TEXT
     ",'number':" SIZE ",'round':" COUNT ",'model':" ID ",'model_name':" TEXT ",'cluster':" ID ",'cluster_name':" TEXT
     ",'strategy':" ID ",'strategy_name':" TEXT ",'proposer':" TEXT ",'runner':" TEXT ",'seed':" COUNT
     ",'state':{'enum':['waiting','running','complete','failed','infeasible','cancelled']},'predicted_us':" RATE
     ",'mean_us':" RATE ",'median_us':" RATE ",'low_us':" RATE ",'high_us':" RATE ",'queued':" STAMP ",'started':" STAMP
     ",'ended':" STAMP ",'reason':" TEXT ",'environment':" ID ",'environment_details':{'type':'object'},"
     "'iterations_us':" TIMES ",'team':" TEXT ",'shared':" SHARED ",'attempt':" SIZE ",'client':" TEXT "}}"},
    {"RecordChange",
     "{'type':'object','required':['shared'],'additionalProperties':false,'properties':{'shared':" SHARED "}}"},
    {"RecordBatch",
     "{'type':'object','required':['records'],'additionalProperties':false,'properties':{'shared':" SHARED
     "," BATCH("records", "{'$ref':'#/components/schemas/NewRecord'}") "}}"},
    {"TrialBatch", "{'type':'object','required':['trials'],'additionalProperties':false,"
                   "'properties':{" BATCH("trials", "{'$ref':'#/components/schemas/NewTrial'}") "}}"},
    {"NewRecord", "{'type':'object','description':'A trial that has ended. Its model, cluster and strategy are ids or "
                  "names. A complete "
                  "one has iterations_us, or mean_us and median_us; another has a reason. Without a uid it gets one',"
                  "'required':['model','cluster','strategy','proposer','runner'],'additionalProperties':false,"
                  "'properties':{'model':" TEXT ",'cluster':" TEXT "," ENDED_TRIAL "}}"},
    {"NewTrial", "{'type':'object','description':'As NewRecord; model and cluster are those of the session, and a "
                 "complete one has iterations_us','required':['strategy','proposer','runner'],"
                 "'additionalProperties':false,'properties':{'model':" TEXT ",'cluster':" TEXT "," ENDED_TRIAL "}}"},
    {"BatchResult", "{'type':'object','required':['added','duplicates','uids'],'additionalProperties':false,"
                    "'properties':{'added':" COUNT ",'duplicates':" COUNT
                    ",'uids':{'type':'array','description':'in the order of the request','items':" TEXT "}}}"},
    {"LineBatch",
     "{'type':'object','description':'Lines as syncopate dataset export --references writes them: records, and before "
     "each the objects and sessions that it needs and this dataset lacks','required':['lines'],"
     "'additionalProperties':false,'properties':{'lines':{'type':'array','minItems':1,'maxItems':100000,"
     "'items':{'type':'string','minLength':2}}}}"},
    {"LineBatchResult",
     "{'type':'object','description':'What was added; duplicates were here already, unfinished trials are left out, "
     "and "
     "lines of syncopate.calibration/1, which older exports have, are skipped',"
     "'required':['objects','sessions','trials','duplicates','unfinished','skipped'],'additionalProperties':false,"
     "'properties':{'objects':" COUNT ",'sessions':" COUNT ",'trials':" COUNT ",'duplicates':" COUNT
     ",'unfinished':" COUNT ",'skipped':" COUNT "}}"},
    {"NewRanker",
     "{'type':'object','description':'domains or filter say which trials, without either "
     "all','additionalProperties':false,"
     "'properties':{'kind':{'enum':['trees','linear','rnn','gat'],'default':'trees'},'residual':{'type':'boolean',"
     "'default':true,'description':'the ranker corrects the "
     "timeline'},'domains':{'type':'array','minItems':1,'maxItems':16,"
     "'items':{'type':'object','minProperties':1,'additionalProperties':false,'properties':{'model':" TEXT
     ",'cluster':" TEXT ",'runner':" TEXT "}}},'filter':" TEXT ",'from':{'type':'string','minLength':1,"
     "'description':'a ranker to train on, which keeps its kind and residual'},"
     "'held_out':{'type':'number','minimum':0,'maximum':0.99,'description':'share of each domain to judge the ranker "
     "by'},"
     "'name':" TEXT ",'seed':" COUNT ",'shared':" SHARED "}}"},
    {"Ranker",
     "{'type':'object','required':['schema','id','name','created','usable','trials','held_out','domains'],"
     "'additionalProperties':false,'properties':{'schema':{'const':'syncopate.trained-ranker/1'},'id':" ID
     ",'name':" TEXT ",'created':" STAMP
     ",'usable':{'type':'boolean','description':'whether this version of the service can use it'},'kind':" TEXT
     ",'residual':" FLAG ",'seed':" COUNT ",'epochs':" COUNT ",'training_accuracy':" SHARE
     ",'validation_accuracy':" SHARE ",'version':" TEXT ",'from':" ID ",'trials':" COUNT ",'held_out':" COUNT
     ",'held_out_accuracy':" SHARE ",'timeline_accuracy':" SHARE
     ",'domains':{'type':'array','items':{'type':'object','required':['model','cluster',"
     "'runner','trials','strategies'],'additionalProperties':false,'properties':{'model':" TEXT ",'cluster':" TEXT
     ",'runner':{'type':'string'},'trials':" COUNT ",'strategies':" COUNT "}}}}}"},
    {"OperationList", LIST("Operation")},
    {"Operation",
     "{'type':'object','required':['id','href','kind','state','request','created'],'additionalProperties':false,"
     "'properties':{'id':" TEXT ",'href':" TEXT ",'kind':{'enum':['train-ranker']},"
     "'state':{'enum':['running','done','failed']},'team':" TEXT ",'request':{'type':'object'},"
     "'result':{'type':'object','description':'ranker: the id of the new ranker'},"
     "'error':{'type':'object','required':['code','detail'],'additionalProperties':false,'properties':{'code':" TEXT
     ",'detail':" TEXT "}},'created':" STAMP ",'ended':" STAMP "}}"},
    {"SuggestRequest",
     "{'type':'object','required':['client'],'additionalProperties':false,'properties':{'client':" CLIENT
     ",'count':{'type':'integer','minimum':1,'maximum':64},'lease_s':" LEASE ",'algorithms':" ABILITIES(
         "this client") ",'bench_s':{'type':'number','minimum':1,'maximum':3600,"
                        "'description':'This client can measure the cluster, within so many seconds. "
                        "Left out: it cannot, and is never asked to'}}}"},
    {"Suggestions",
     "{'type':'object','required':['next','trials'],'additionalProperties':false,"
     "'properties':{'next':{'enum':['trials','wait','over','bench'],"
     "'description':'wait: others still run trials, or measure the cluster; over: the session needs no more; "
     "bench: measure the cluster first, only for clients that gave bench_s'},"
     "'bench':{'type':'object','required':['attempt','lease_s','cluster'],'additionalProperties':false,"
     "'properties':{'attempt':" SIZE ",'lease_s':" RATE ",'cluster':" ID "}},"
     "'trials':{'type':'array','items':{'type':'object','required':['number','attempt','round',"
     "'proposer','lease_s','iterations','warmup','strategy_id','strategy'],'additionalProperties':false,"
     "'properties':{'number':" SIZE ",'attempt':" SIZE ",'round':" COUNT ",'proposer':" TEXT ",'lease_s':" RATE
     ",'iterations':" SIZE ",'warmup':" COUNT ",'predicted_us':" RATE ",'give_up_us':" RATE
     ",'weather':{'type':'integer','minimum':1,'description':'the seed of the weather that the trial must run in, and "
     "that its environment must say: weather'},'strategy_id':" ID
     ",'strategy':{'$ref':'#/components/schemas/Strategy'}}}}}}"},
    {"BenchCompletion",
     "{'type':'object','required':['client','attempt','cluster'],'additionalProperties':false,"
     "'properties':{'client':" CLIENT ",'attempt':" SIZE ",'cluster':{'$ref':'#/components/schemas/Cluster'}}}"},
    {"BenchFailure", "{'type':'object','required':['client','attempt','reason'],'additionalProperties':false,"
                     "'properties':{'client':" CLIENT ",'attempt':" SIZE ",'reason':" TEXT
                     ",'again':{'type':'boolean','description':'It is given back: another client may try'}}}"},
    {"BenchEnd",
     "{'type':'object','required':['used'],'additionalProperties':false,"
     "'properties':{'cluster':" ID ",'used':{'type':'boolean',"
     "'description':'Whether the session is about the measured description, which is cluster, from now on'}}}"},
    {"Heartbeat", "{'type':'object','required':['client','attempt'],'additionalProperties':false,"
                  "'properties':{'client':" CLIENT ",'attempt':" SIZE ",'lease_s':" LEASE "}}"},
    {"Report", "{'type':'object','required':['client','attempt','iterations_us'],'additionalProperties':false,"
               "'properties':{'client':" CLIENT ",'attempt':" SIZE ",'iterations_us':" REPORTED_TIMES "}}"},
    {"Turn", "{'type':'object','required':['lease_s','stop'],'additionalProperties':false,"
             "'properties':{'lease_s':" RATE ",'stop':" FLAG "}}"},
    {"Completion", "{'type':'object','required':['client','attempt','iterations_us'],'additionalProperties':false,"
                   "'properties':{'client':" CLIENT ",'attempt':" SIZE ",'iterations_us':" REPORTED_TIMES
                   ",'environment':{'type':'object'},'runner':" RUNNER ",'early':" FLAG "}}"},
    {"Failure", "{'type':'object','required':['client','attempt','reason'],'additionalProperties':false,"
                "'properties':{'client':" CLIENT ",'attempt':" SIZE ",'reason':" TEXT ",'infeasible':" FLAG
                ",'runner':" RUNNER "}}"},
    {"Best", "{'type':'object','required':['trials','best','overlap','lower_bound_us','gap','strategy'],"
             "'additionalProperties':false,'properties':{'trials':" COUNT ",'best':" MEASURED ",'baseline':" MEASURED
             ",'speedup':" RATE ",'overlap':" FLAG ",'lower_bound_us':" AMOUNT ",'gap':" NUMBER
             ",'strategy':{'$ref':'#/components/schemas/Strategy'}}}"},
    {"Export",
     "{'description':'strategy: a Strategy. A framework: its own file where it takes one; where it takes several, "
     "format, files (their texts by name; base64 for what is no text) and losses','type':'object',"
     "'properties':{'losses':" LOSSES ",'files':{'type':'object',"
     "'additionalProperties':{'oneOf':[{'type':'string'},{'type':'object','required':['base64'],"
     "'additionalProperties':false,'properties':{'base64':{'type':'string'}}}]}}}}"},
    {"Importance", "{'type':'object','required':['knobs','proposers'],'additionalProperties':false,"
                   "'properties':{" LESSONS "}}"},
    {"Outcome",
     "{'type':'object','description':'best and baseline are two of the strategies. Without a trial that completed "
     "there "
     "is no best and no strategy','required':['schema','session','state','trials','lower_bound_us','overlap',"
     "'strategies','accuracy','knobs','proposers'],'additionalProperties':false,"
     "'properties':{'schema':{'const':'syncopate.outcome/1'},'session':" TEXT ",'state':{'enum':['running','done',"
     "'stopped','failed','paused','cancelled']},'reason':" TEXT ",'trials':" COUNT ",'lower_bound_us':" AMOUNT
     ",'best':" TRIED ",'baseline':" TRIED ",'speedup':" RATE ",'gap':" NUMBER ",'overlap':" FLAG
     ",'weather':{'type':'object','description':'Of a session in weather: the seed of its first trials, the strategy "
     "that is predicted to be the best on the quiet network, and how many times as long as the best that one takes in "
     "the same weather. measured_us is then the mean, 95% of iterations being shorter than p95_us; in_weather and "
     "quiet_us are predicted','required':['seed'],'additionalProperties':false,'properties':{'seed':" SIZE
     ",'quiet_best':" TRIED ",'loss':" RATIO "}}"
     ",'stale':" STALE ",'strategies':{'type':'array','description':'In the order of their first trials','items':" TRIED
     "},'accuracy':{'type':'object','description':'Of predictions: how many, the median of |predicted / measured - 1|, "
     "and the share of pairs that were measured in the order predicted','required':['strategies'],"
     "'additionalProperties':false,'properties':{'strategies':" COUNT ",'off':" AMOUNT ",'ordered':" SHARE "}}," LESSONS
     ",'strategy':{'$ref':'#/components/schemas/Strategy'},'stale_strategy':{'$ref':'#/components/schemas/"
     "Strategy'}}}"},
};

static const struct parameter parameters[] = {
    {"id", TEXT, "A whole id, 4 or more first digits of one, or a name"},
    {"name", TEXT, "Only what has this name"},
    {"order", "{'enum':['created','-created'],'default':'created'}", "Oldest or newest first"},
    {"page_size", "{'type':'integer','minimum':1,'maximum':1000,'default':100}", "Most items of a page"},
    {"page_token", "{'type':'string'}", "next_page_token of the page before"},
    {"session", TEXT, "A session's id"},
    {"number", "{'type':'integer','minimum':1}", "A trial's number within its session"},
    {"state", "{'enum':['running','done','stopped','failed','paused','cancelled']}", "Only those in this state"},
    {"team", TEXT, "Only this team's"},
    {"iterations", FLAG, "With every iteration's time"},
    {"filter", "{'type':'string','maxLength':4096}",
     "Which trials: comparisons with AND, OR, NOT, IN and brackets, like model = resnet50 AND measured_us < 90000"},
    {"RecordList.order",
     "{'enum':['recorded','-recorded','number','-number','predicted','-predicted','measured','-measured'],"
     "'default':'recorded'}",
     "What to sort by; - before it sorts the other way round. Trials without it come last"},
    {"format", "{'enum':['json','csv','jsonl'],'default':'json'}", "JSON, CSV or JSON Lines"},
    {"Export.format",
     "{'enum':['strategy','csv','jsonl','pytorch-ddp','pytorch-hook','fsdp2','fsdp2-code','horovod','deepspeed','"
     "megatron','torchtitan',"
     "'accelerate','tensorflow','xla','byteps','bytescheduler','autodist','nccl'],'default':'strategy'}",
     "strategy: the best one, as every command reads it; a framework: the best one in its form; csv: the trials; "
     "jsonl: the trials with all that they refer to, in pages for \"syncopate dataset import\""},
    {"strict", FLAG, "Refuse (422) when the framework's form cannot say everything that the strategy does"},
    {"accept", TEXT,
     "With a framework's form: losses, with commas between, that the job makes good by itself (sharded,groups), "
     "beside those that the session accepts in this form; they refuse nothing"},
    {"references", FLAG, "In JSON Lines: with the objects and sessions that trials need, before them"},
    {"uid", TEXT, "A trial's uid"},
    {"operation", TEXT, "An operation's id"},
    {"model", TEXT, "A model's id or name"},
    {"cluster", TEXT, "A cluster's id or name"},
    {"a", TEXT, "The first strategy's id or name, or session's id"},
    {"b", TEXT, "The second strategy's id or name, or session's id"},
    {"way", TEXT, "A baseline's name"},
    {"memory", TEXT, "What a device may hold: 24GB,80GB; of one way in bytes, 0 for as little as possible"},
    {"gbit_per_s", RATE, "Another rate of every NIC"},
    {"nic_factor", RATE, "What the rate of each NIC is multiplied by"},
    {"nodes", SIZE, "Another number of nodes with devices"},
    {"batch", RATE, "Another batch of a device"},
};

const struct schema *schemas_list(size_t *n) {
    *n = sizeof schemas / sizeof *schemas;
    return schemas;
}

const struct parameter *parameters_find(const char *name) {
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        if (!strcmp(parameters[i].name, name))
            return &parameters[i];
    return NULL;
}

const struct parameter *parameters_find_of(const char *response, const char *name) {
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", response ? response : "", name);
    const struct parameter *special = parameters_find(whole);
    return special ? special : parameters_find(name);
}

cJSON *schema_parse(const char *text) {
    char *copy = strdup(text);
    for (char *c = copy; c && *c; c++)
        *c = *c == '\'' ? '"' : *c;
    cJSON *json = copy ? cJSON_Parse(copy) : NULL;
    free(copy);
    return json;
}
