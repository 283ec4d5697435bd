"""Convolutional networks for ImageNet images, 1000 classes, as torchvision builds and names them. Images have 224 x 224
pixels, for inception_v3 299 x 299.

vgg16      Simonyan and Zisserman, arXiv:1409.1556, configuration D
googlenet  Szegedy et al., arXiv:1409.4842, with batch normalization and without auxiliary heads; torchvision's "5x5"
           branch has 3x3 kernels
inception_v3 Szegedy et al., arXiv:1512.00567, without the auxiliary head
resnet     He et al., arXiv:1512.03385, with the stride of a bottleneck in its 3x3 convolution (v1.5)
densenet   Huang et al., arXiv:1608.06993, growth 32
"""


def vgg16(g):
    x, index = g.input(3, 224, 224), 0
    for channels, repeats in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(repeats):
            x = g.conv(f"features.{index}", x, channels, 3, pad=1, bias=True)
            x = g.activation(f"features.{index + 1}", x)
            index += 2
        x = g.pool(f"features.{index}", x, 2, 2)
        index += 1
    x = g.view(x, 512 * 7 * 7)
    for index in (0, 3):
        x = g.linear(f"classifier.{index}", x, 4096)
        x = g.activation(f"classifier.{index + 1}", x)
        x = g.dropout(f"classifier.{index + 2}", x)
    g.loss("loss", g.linear("classifier.6", x, 1000))


def basic_conv(g, name, x, channels, kernel, stride=1, pad=0):
    x = g.conv(name + ".conv", x, channels, kernel, stride, pad)
    return g.activation(name + ".relu", g.batch_norm(name + ".bn", x))


def inception(g, name, x, one, three_in, three, five_in, five, pool):
    branch1 = basic_conv(g, name + ".branch1", x, one, 1)
    branch2 = basic_conv(g, name + ".branch2.1", basic_conv(g, name + ".branch2.0", x, three_in, 1), three, 3, pad=1)
    branch3 = basic_conv(g, name + ".branch3.1", basic_conv(g, name + ".branch3.0", x, five_in, 1), five, 3, pad=1)
    branch4 = basic_conv(g, name + ".branch4.1", g.pool(name + ".branch4.0", x, 3, 1, 1), pool, 1)
    return g.concat(name + ".concat", [branch1, branch2, branch3, branch4])


INCEPTIONS = {  # table 1 of the paper: 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection
    "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet(g):
    x = basic_conv(g, "conv1", g.input(3, 224, 224), 64, 7, 2, 3)
    x = g.pool("maxpool1", x, 3, 2, ceil=True)
    x = basic_conv(g, "conv3", basic_conv(g, "conv2", x, 64, 1), 192, 3, pad=1)
    x = g.pool("maxpool2", x, 3, 2, ceil=True)
    for name, widths in INCEPTIONS.items():
        x = inception(g, "inception" + name, x, *widths)
        if name == "3b":
            x = g.pool("maxpool3", x, 3, 2, ceil=True)
        if name == "4e":
            x = g.pool("maxpool4", x, 2, 2, ceil=True)
    x = g.dropout("dropout", g.global_pool("avgpool", x))
    g.loss("loss", g.linear("fc", x, 1000))


def chain(g, name, x, *convs):
    """Convolutions one after another, each (suffix of the name, channels, kernel, stride, pad)."""
    for suffix, channels, kernel, stride, pad in convs:
        x = basic_conv(g, name + suffix, x, channels, kernel, stride, pad)
    return x


def pooled(g, name, x, channels):
    return basic_conv(g, name + ".branch_pool", g.pool(name + ".pool", x, 3, 1, 1), channels, 1)


WIDE, HIGH = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))  # kernel, stride, pad


def inception_a(g, name, x, pool):
    return g.concat(name + ".concat", [
        chain(g, name + ".branch1x1", x, ("", 64, 1, 1, 0)),
        chain(g, name + ".branch5x5_", x, ("1", 48, 1, 1, 0), ("2", 64, 5, 1, 2)),
        chain(g, name + ".branch3x3dbl_", x, ("1", 64, 1, 1, 0), ("2", 96, 3, 1, 1), ("3", 96, 3, 1, 1)),
        pooled(g, name, x, pool)])


def inception_b(g, name, x):
    return g.concat(name + ".concat", [
        chain(g, name + ".branch3x3", x, ("", 384, 3, 2, 0)),
        chain(g, name + ".branch3x3dbl_", x, ("1", 64, 1, 1, 0), ("2", 96, 3, 1, 1), ("3", 96, 3, 2, 0)),
        g.pool(name + ".pool", x, 3, 2)])


def inception_c(g, name, x, width):
    return g.concat(name + ".concat", [
        chain(g, name + ".branch1x1", x, ("", 192, 1, 1, 0)),
        chain(g, name + ".branch7x7_", x, ("1", width, 1, 1, 0), ("2", width, *WIDE), ("3", 192, *HIGH)),
        chain(g, name + ".branch7x7dbl_", x, ("1", width, 1, 1, 0), ("2", width, *HIGH), ("3", width, *WIDE),
              ("4", width, *HIGH), ("5", 192, *WIDE)),
        pooled(g, name, x, 192)])


def inception_d(g, name, x):
    return g.concat(name + ".concat", [
        chain(g, name + ".branch3x3_", x, ("1", 192, 1, 1, 0), ("2", 320, 3, 2, 0)),
        chain(g, name + ".branch7x7x3_", x, ("1", 192, 1, 1, 0), ("2", 192, *WIDE), ("3", 192, *HIGH),
              ("4", 192, 3, 2, 0)),
        g.pool(name + ".pool", x, 3, 2)])


def wide_and_high(g, name, x):
    """Side by side: a 1 x 3 and a 3 x 1 convolution of the same input."""
    return [basic_conv(g, name + "a", x, 384, (1, 3), 1, (0, 1)), basic_conv(g, name + "b", x, 384, (3, 1), 1, (1, 0))]


def inception_e(g, name, x):
    double = chain(g, name + ".branch3x3dbl_", x, ("1", 448, 1, 1, 0), ("2", 384, 3, 1, 1))
    return g.concat(name + ".concat", [
        chain(g, name + ".branch1x1", x, ("", 320, 1, 1, 0)),
        *wide_and_high(g, name + ".branch3x3_2", basic_conv(g, name + ".branch3x3_1", x, 384, 1)),
        *wide_and_high(g, name + ".branch3x3dbl_3", double),
        pooled(g, name, x, 192)])


def inception_v3(g):
    x = chain(g, "Conv2d_", g.input(3, 299, 299), ("1a_3x3", 32, 3, 2, 0), ("2a_3x3", 32, 3, 1, 0),
              ("2b_3x3", 64, 3, 1, 1))
    x = chain(g, "Conv2d_", g.pool("maxpool1", x, 3, 2), ("3b_1x1", 80, 1, 1, 0), ("4a_3x3", 192, 3, 1, 0))
    x = g.pool("maxpool2", x, 3, 2)
    for name, pool in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = inception_a(g, "Mixed_" + name, x, pool)
    x = inception_b(g, "Mixed_6a", x)
    for name, width in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = inception_c(g, "Mixed_" + name, x, width)
    x = inception_d(g, "Mixed_7a", x)
    for name in ("7b", "7c"):
        x = inception_e(g, "Mixed_" + name, x)
    x = g.dropout("dropout", g.global_pool("avgpool", x))
    g.loss("loss", g.linear("fc", x, 1000))


def basic_block(g, name, x, width, stride):
    y = g.activation(name + ".relu1", g.batch_norm(name + ".bn1", g.conv(name + ".conv1", x, width, 3, stride, 1)))
    return g.batch_norm(name + ".bn2", g.conv(name + ".conv2", y, width, 3, 1, 1))


def bottleneck(g, name, x, width, stride):
    y = g.activation(name + ".relu1", g.batch_norm(name + ".bn1", g.conv(name + ".conv1", x, width, 1)))
    y = g.activation(name + ".relu2", g.batch_norm(name + ".bn2", g.conv(name + ".conv2", y, width, 3, stride, 1)))
    return g.batch_norm(name + ".bn3", g.conv(name + ".conv3", y, 4 * width, 1))


def resnet(g, block, repeats):
    x = g.conv("conv1", g.input(3, 224, 224), 64, 7, 2, 3)
    x = g.pool("maxpool", g.activation("relu", g.batch_norm("bn1", x)), 3, 2, 1)
    for stage, count in enumerate(repeats):
        for i in range(count):
            name, stride = f"layer{stage + 1}.{i}", 2 if stage and not i else 1
            y = block(g, name, x, 64 << stage, stride)
            if y.shape != x.shape:
                x = g.conv(name + ".downsample.0", x, y.shape[0], 1, stride)
                x = g.batch_norm(name + ".downsample.1", x)
            x = g.activation(name + ".relu", g.add(name + ".add", y, x))
    g.loss("loss", g.linear("fc", g.global_pool("avgpool", x), 1000))


def resnet18(g):
    resnet(g, basic_block, (2, 2, 2, 2))


def resnet50(g):
    resnet(g, bottleneck, (3, 4, 6, 3))


def resnet101(g):
    resnet(g, bottleneck, (3, 4, 23, 3))


def resnet152(g):
    resnet(g, bottleneck, (3, 8, 36, 3))


def norm_relu_conv(g, name, suffix, x, channels, kernel, pad=0):
    x = g.activation(f"{name}.relu{suffix}", g.batch_norm(f"{name}.norm{suffix}", x))
    return g.conv(f"{name}.conv{suffix}", x, channels, kernel, pad=pad)


def densenet(g, repeats, growth=32):
    x = g.conv("features.conv0", g.input(3, 224, 224), 64, 7, 2, 3)
    x = g.activation("features.relu0", g.batch_norm("features.norm0", x))
    x = g.pool("features.pool0", x, 3, 2, 1)
    for block, count in enumerate(repeats, 1):
        for layer in range(1, count + 1):
            name = f"features.denseblock{block}.denselayer{layer}"
            y = norm_relu_conv(g, name, "1", x, 4 * growth, 1)
            y = norm_relu_conv(g, name, "2", y, growth, 3, 1)
            x = g.concat(name + ".concat", [x, y])
        if block < len(repeats):
            name = f"features.transition{block}"
            x = g.pool(name + ".pool", norm_relu_conv(g, name, "", x, x.shape[0] // 2, 1), 2, 2)
    x = g.activation("relu", g.batch_norm("features.norm5", x))
    g.loss("loss", g.linear("classifier", g.global_pool("avgpool", x), 1000))


def densenet121(g):
    densenet(g, (6, 12, 24, 16))


def densenet201(g):
    densenet(g, (6, 12, 48, 32))
