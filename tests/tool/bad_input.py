"""Bad input ends with the right exit code and a message that says what is wrong, and no file.

bad_input.py [TEST...]
"""

import json
import os
import sys

import numpy as np
from onnx import TensorProto, helper, parser

from harness import build, expect_text, floats, integers, run_tests


def regression(inputs="float[2, 3] x, float[2] y"):
    return build("p = MatMul(x, w) d = Sub(p, y) s = Mul(d, d) L = ReduceMean <keepdims = 0>(s)",
                 {"w": floats([1, 2, 3])}, inputs=inputs)


FEEDS = {"x": floats(np.arange(12).reshape(4, 3)), "y": floats([1, 2, 3, 4])}


def refuse_file(bench, content, *words):
    expect_text(bench.refuse(content), "error", "model.onnx", *words)


def test_files_that_are_no_models(bench):
    refuse_file(bench, b"", "empty")
    refuse_file(bench, b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
                "Git LFS")
    refuse_file(bench, b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    refuse_file(bench, b"PK\x03\x04" + b"\0" * 64)
    refuse_file(bench, b"hello, this is no model\n" * 10)


def test_truncated_models(bench):
    data = regression().SerializeToString()
    for size in range(1, len(data), 7):
        result = bench.sgtc(bench.write_model(data[:size]), "--stop-after=import")
        assert result.returncode == 1, (size, result.returncode, result.stderr)
        expect_text(result, "error")


def test_corrupt_models_never_crash(bench):
    data = bytearray(regression().SerializeToString())
    random = np.random.default_rng(7)
    for _ in range(60):
        changed = bytearray(data)
        for place in random.integers(0, len(data), 3):
            changed[place] = random.integers(0, 256)
        result = bench.sgtc(bench.write_model(bytes(changed)), "--stop-after=plan")
        assert result.returncode in (0, 1), (result.returncode, result.stderr)


def test_paths_that_are_no_files(bench):
    bench.path("folder").mkdir()
    for name in ("folder", "absent.onnx", "folder/absent.onnx"):
        result = bench.sgtc(name, "-o", "train")
        assert result.returncode == 1, result.stderr
        expect_text(result, "error", name)
        assert not bench.path("train").exists()


def external_model(location, **more):
    model = build("L = ReduceSum <keepdims = 0>(w)", {"w": floats([1, 2, 3, 4])})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(value))
    return model


def test_external_data(bench):
    bench.path("short.bin").write_bytes(b"\0" * 12)
    secret = bench.path("secret.bin")
    secret.write_bytes(b"\0" * 16)
    bench.path("link.bin").symlink_to("/etc/passwd")
    expect_text(bench.refuse(external_model("absent.bin")), '"w"', "absent.bin")
    expect_text(bench.refuse(external_model("short.bin")), '"w"', "short.bin", "16 bytes",
                "12")
    expect_text(bench.refuse(external_model("secret.bin", offset=8)), '"w"', "too short")
    expect_text(bench.refuse(external_model("secret.bin", length=8)), '"w"', "16", "8")
    expect_text(bench.refuse(external_model("secret.bin", offset=-4)), '"w"', "offset", "-4")
    for location in ("../secret.bin", str(secret), "a/../../secret.bin", "link.bin"):
        result = bench.refuse(external_model(location))
        expect_text(result, '"w"', location, "outside")
    bench.path("loop.bin").symlink_to("loop.bin")
    for location, word in (("loop.bin", "symbolic links"), ("x" * 300, "too long"),
                           ("x/" * 3000, "6000 characters"), (".", "directory"),
                           ("pipe", "regular file")):
        if location == "pipe":
            os.mkfifo(bench.path("pipe"))
        result = bench.refuse(external_model(location))
        expect_text(result, '"w"', word)
        assert len(result.stderr.splitlines()) == 1 and len(result.stderr) < 1000, result.stderr


def test_unsupported_operators_are_all_named(bench):
    model = build("a = Det(x) b = DeformConv(y, y, z) c = MyOp(x) s = ReduceSum <keepdims = 0>(b) "
                  "d = Add(a, s) e = ReduceSum <keepdims = 0>(c) L = Add(d, e)",
                  {"x": floats([[1, 2], [3, 4]]), "y": floats(np.ones([1, 1, 2, 2])),
                   "z": floats(np.ones([1, 2, 2, 2]))})
    model.graph.node[2].domain = "com.example"
    expect_text(bench.refuse(model), "Det", "DeformConv", "com.example", "MyOp")


def test_lint_names_what_the_exporter_lost_and_writes_nothing(bench):
    model = build("h = Gather(table, i) d = Dropout(h) L = ReduceSum <keepdims = 0>(d)",
                  {"table": floats([[1, 2], [0, 0], [3, 4]])}, inputs="int64[2] i")
    result = bench.sgtc(bench.write_model(model), "--lint")
    assert result.returncode == 0 and result.stdout == "", result.stdout
    expect_text(result, "warning", "Dropout drops nothing", "--padding-index table=1")
    assert [path.name for path in bench.folder.iterdir()] == ["model.onnx"]


def test_loop_of_more_iterations_than_can_be_unrolled(bench):
    model = build("y = Identity(x) z = Mul(y, w) L = ReduceMean <keepdims = 0>(z)",
                  {"w": floats([1, 2]), "trips": integers(10**18)}, inputs="float[2] x")
    body = parser.parse_graph("body (int64 k, bool c, float[2] v) => (bool d, float[2] n) "
                              "{ d = Identity(c) n = Neg(v) }")
    model.graph.node[0].CopyFrom(helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body))
    expect_text(bench.refuse(model), 'node "y" (Loop)', "more than 65536 iterations")


def test_symbolic_dimensions(bench):
    model = regression('float["B", 3] x, float["B"] y')
    expect_text(bench.refuse(model), "B", "--dim")
    expect_text(bench.refuse(model, "--dim", "B=2", "--dim", "C=4"), "C", "it has B")
    bench.compile(model, "--dim", "B=2,4")
    result = bench.start("--steps", 1, "--dim", "B=3", feeds=FEEDS)
    assert result.returncode in (1, 2), result.returncode
    expect_text(result, "no plan has this size", "B=2", "B=4")


def test_choice_of_the_loss(bench):
    model = build("L = ReduceSum <keepdims = 0>(w) M = ReduceMax <keepdims = 0>(w) V = Exp(w)",
                  {"w": floats([1, 2])}, outputs="float L, float M, float[2] V")
    expect_text(bench.refuse(model), "--loss", "L", "M")
    expect_text(bench.refuse(model, "--loss", "N"), "N", "L", "M")
    expect_text(bench.refuse(model, "--loss", "V"), "V", "scalar")
    bench.compile(model, "--loss", "M")
    assert bench.train()[0] == [2]


def test_usage_of_the_compiler(bench):
    path = bench.write_model(regression())
    for options, word in ((["--bogus"], "--bogus"), (["--optimizer", "sdg"], "sdg"),
                          (["--micro-batches", "0"], "micro-batches"), (["--emit", "exo"], "exo"),
                          (["--dim", "B"], "NAME=VALUE"), (["--dim", "B=x"], "x"),
                          (["--dim", "B=-1"], "-1"),
                          (["--clip-norm", "-1"], "clip-norm"), (["--target", "sm_12"], "sm_12"),
                          (["--stop-after", "never"], "never"), (["--nesterov"], "--momentum"),
                          (["--betas", "0.9"], "betas"), (["-j", "0"], "-j")):
        result = bench.sgtc(path, "-o", "train", *options)
        assert result.returncode == 2, (options, result.returncode, result.stderr)
        expect_text(result, word)
        assert not bench.path("train").exists()
    assert bench.sgtc().returncode == 2
    result = bench.sgtc(path, "--mesh", "tp=2")
    assert result.returncode == 1
    expect_text(result, "--mesh", "tensor parallelism")
    expect_text(bench.refuse(regression(), "--mesh", "2y4"), "2y4")
    expect_text(bench.refuse(regression(), "--cpu", "z80"), "z80")
    expect_text(bench.refuse(regression(), "--train", "q*"), "--train q*")
    expect_text(bench.refuse(regression(), "--freeze", "q"), "--freeze q")


def test_errors_as_json(bench):
    result = bench.refuse(external_model("absent.bin"), "--error-format", "json")
    records = [json.loads(line) for line in result.stderr.splitlines()]
    assert records and all(set(r) == {"severity", "object", "message"} for r in records), records
    assert records[0]["severity"] == "error"


def test_executable_that_cannot_be_written(bench):
    path = bench.write_model(regression())
    for output in ("absent/train", "/proc/train", "folder"):
        bench.path("folder").mkdir(exist_ok=True)
        result = bench.sgtc(path, "-o", output)
        assert result.returncode == 1, (output, result.returncode, result.stderr)
        expect_text(result, "error", output)
    for what in ("plan-json", "asm", "dot"):
        result = bench.sgtc(path, f"--emit={what}=absent/file")
        assert result.returncode == 1, (what, result.returncode)
        expect_text(result, "absent/file")
    assert sorted(p.name for p in bench.folder.iterdir()) == ["folder", "model.onnx"]


def refuse_run(bench, *words, feeds=None, arguments=("--steps", 1), code=1):
    """The program must end with `code` and these words."""
    result = bench.start(*arguments, feeds=FEEDS if feeds is None else feeds)
    assert result.returncode == code, (words, result.returncode, result.stderr)
    expect_text(result, "error", *words)


def test_wrong_feeds(bench):
    bench.compile(regression())
    x, y = FEEDS["x"], FEEDS["y"]
    refuse_run(bench, "input y", "no data", feeds={"x": x})
    refuse_run(bench, "no input z", "x, y", feeds={**FEEDS, "z": x})
    refuse_run(bench, "x", "f32", "f64", feeds={**FEEDS, "x": x.astype(float)})
    refuse_run(bench, "x", "f32", "i64", feeds={**FEEDS, "x": x.astype(np.int64)})
    refuse_run(bench, "x", "[4,2]", feeds={**FEEDS, "x": np.ascontiguousarray(x[:, :2])})
    refuse_run(bench, "x", "[12]", feeds={**FEEDS, "x": x.ravel()})
    refuse_run(bench, "4 and 3", feeds={**FEEDS, "y": y[:3]})
    refuse_run(bench, "1 samples", "takes 2", feeds={"x": x[:1], "y": y[:1]})
    refuse_run(bench, "Fortran", feeds={**FEEDS, "x": np.asfortranarray(x)})
    refuse_run(bench, "element type", feeds={**FEEDS, "x": x.astype(">f4")})
    refuse_run(bench, "absent.npy", feeds={**FEEDS, "x": "absent.npy"})
    refuse_run(bench, "more than one file", code=2,
               arguments=["--steps", 1, "--data", f"x={bench.path('x.npy')}"])


def test_broken_array_files(bench):
    bench.compile(regression())
    np.save(bench.path("whole.npy"), FEEDS["x"])
    data = bench.path("whole.npy").read_bytes()
    broken = bench.path("broken.npy")
    for content, word in ((b"", "not a .npy"), (data[:8], "not a .npy"), (data[:40], "cut off"),
                          (data[:-4], "cut off"), (b"hello" * 10, "not a .npy"),
                          (data.replace(b"(4, 3)", b"(4, x)"), "shape"),
                          (data.replace(b"(4, 3)", b"(4,-3)"), "shape"),
                          (data.replace(b"(4, 3), }" + b" " * 18, b"(4611686018427387904, 3), }"),
                           "cut off")):
        broken.write_bytes(content)
        refuse_run(bench, "broken.npy", word, feeds={**FEEDS, "x": broken})
    refuse_run(bench, str(bench.folder), feeds={**FEEDS, "x": bench.folder})


def test_label_out_of_range(bench):
    model = build("z = Add(x, b) L = SoftmaxCrossEntropyLoss(z, labels)", {"b": floats([0, 0, 0])},
                  inputs="float[2, 3] x, int64[2] labels")
    model.graph.node[1].name = "the_loss"
    bench.compile(model)
    for label in (3, 2**40, -1):
        refuse_run(bench, "node the_loss", f"index {label}", "extent 3",
                   feeds={"x": floats(np.ones([2, 3])), "labels": integers([0, label])})


def test_loss_that_is_not_a_number(bench):
    bench.compile(regression())
    feeds = {**FEEDS, "y": floats([1, np.nan, 3, 4])}
    losses, after = bench.train(feeds=feeds, steps=4, rate=0.001)
    assert [np.isnan(loss) for loss in losses] == [True, False, True, False], losses
    assert [record["skipped_steps"] for record in bench.log] == [1, 1, 2, 2]
    assert np.isfinite(after["w"]).all() and (after["w"] != [1, 2, 3]).all()
    refuse_run(bench, "step 1", "not finite", feeds=feeds,
               arguments=["--steps", 4, "--on-nan", "stop", "--save", bench.path("stopped")])
    assert not bench.path("stopped").exists()


def test_usage_of_the_executable(bench):
    bench.compile(regression())
    for arguments, word in ((["--bogus"], "--bogus"), (["--step", 1], "--steps"), ([], "--steps"),
                            (["--steps", "x"], "x"), (["--steps", "-1"], "-1"),
                            (["--steps"], "needs a value"), (["--lr", "nan"], "nan"),
                            (["--decay", "fast"], "fast"), (["--data", "x"], "NAME=FILE"),
                            (["stray"], "stray"),
                            (["--resume", "auto", "--steps", 1], "--checkpoint"),
                            (["--save-every", 1, "--steps", 1], "--checkpoint"),
                            (["--threads", 0, "--steps", 1], "--threads")):
        result = bench.run(bench.path("train"), *arguments)
        assert result.returncode == 2, (arguments, result.returncode, result.stderr)
        expect_text(result, word)


def test_outputs_of_a_run_that_cannot_be_written(bench):
    bench.compile(regression())
    for option in ("--save", "--log", "--trace"):
        refuse_run(bench, "absent/file", arguments=["--steps", 1, option, "absent/file"])
    bench.path("file").write_text("x")
    refuse_run(bench, "file/folder", arguments=["--steps", 1, "--checkpoint", "file/folder"])
    refuse_run(bench, "no such output", "L", arguments=["--steps", 0, "--predict", "Q=q.npy"])
    refuse_run(bench, "--predict L", arguments=["--steps", 0, "--predict", "L=q.npy"])
    refuse_run(bench, "absent", arguments=["--steps", 1, "--init", "absent"])
    refuse_run(bench, "absent", arguments=["--steps", 1, "--resume", "absent"])
    refuse_run(bench, "--last-batch=pad", arguments=["--steps", 1, "--last-batch", "pad"],
               feeds={"x": FEEDS["x"][:3], "y": FEEDS["y"][:3]})


def test_initial_values_of_other_shapes(bench):
    bench.compile(regression())
    for content in (b"", b"\xff" * 8, b"\x02" + b"\0" * 7 + b"{}", b"\x10" + b"\0" * 7 + b"{"):
        bench.path("init").write_bytes(content)
        refuse_run(bench, "init", arguments=["--steps", 1, "--init", "init"])


run_tests(globals(), sys.argv[1:])
