// Written by minimax.py: polynomials and constants of the math library.
// clang-format off
#pragma once

#include <stdint.h>

namespace sgtc::kernels {

inline constexpr float kLog2EF32 = 0x1.7154760000000p+0f;
inline constexpr float kLn2F32High = 0x1.62e4000000000p-1f;
inline constexpr float kLn2F32Low = 0x1.7f7d1c0000000p-20f;
inline constexpr double kLog2EF64 = 0x1.71547652b82fep+0;
inline constexpr double kLn2F64High = 0x1.62e42fefa4000p-1;
inline constexpr double kLn2F64Low = -0x1.8432a1b0e2634p-43;
inline constexpr double kLn2PairF64High = 0x1.62e42fefa39efp-1;
inline constexpr double kLn2PairF64Low = 0x1.abc9e3b39803fp-56;
inline constexpr double kPiF64High = 0x1.921fb54442d18p+1;
inline constexpr double kPiF64Low = 0x1.1a62633145c07p-53;
inline constexpr double kPiHalfF64High = 0x1.921fb54442d18p+0;
inline constexpr double kPiHalfF64Low = 0x1.1a62633145c07p-54;
inline constexpr double kPiQuarterF64High = 0x1.921fb54442d18p-1;
inline constexpr double kPiQuarterF64Low = 0x1.1a62633145c07p-55;
inline constexpr double kTwoThirdsF64High = 0x1.5555555555555p-1;
inline constexpr double kTwoThirdsF64Low = 0x1.5555555555555p-55;

// 2 / pi, from the bit of value 1/2 on.
inline constexpr uint32_t kTwoOverPi[] = {
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
    0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
    0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d,
};

// (exp(r) - 1 - r) / r^2, for float and double.
// Largest error 2^-28.3 on [-0.34661, 0.34661].
inline constexpr float kExpF32[] = {
    0x1.fffffc0000000p-2f,
    0x1.5554920000000p-3f,
    0x1.5558ae0000000p-5f,
    0x1.12397c0000000p-7f,
    0x1.6a4f720000000p-10f,
};

// Largest error 2^-61.7 on [-0.34661, 0.34661].
inline constexpr double kExpF64[] = {
    0x1.0000000000000p-1,
    0x1.5555555555559p-3,
    0x1.5555555555557p-5,
    0x1.111111110f64fp-7,
    0x1.6c16c16c156ddp-10,
    0x1.a01a01b006a20p-13,
    0x1.a01a01ab6a3b6p-16,
    0x1.71ddf807144f6p-19,
    0x1.27e4d053dcabcp-22,
    0x1.af5f3a2c0c3eep-26,
    0x1.1f85925e750e4p-29,
};

// (log(1 + f) - f + f^2 / 2) / f^3.
// Largest error 2^-30.4 on [-0.29289, 0.41421].
inline constexpr float kLogF32[] = {
    0x1.5555460000000p-2f,
    -0x1.ffffee0000000p-3f,
    0x1.99a5420000000p-3f,
    -0x1.5562e00000000p-3f,
    0x1.2333060000000p-3f,
    -0x1.fb43f40000000p-4f,
    0x1.e64d920000000p-4f,
    -0x1.e2e36c0000000p-4f,
    0x1.1b41460000000p-4f,
};

// (atanh(s) / s - 1) / s^2 in z = s^2; the second one lacks its first term as well.
// Largest error 2^-66.6 on [0.0, 0.029437].
inline constexpr double kAtanhF64[] = {
    0x1.5555555555555p-2,
    0x1.9999999999d0fp-3,
    0x1.2492492439b83p-3,
    0x1.c71c724b1b1f1p-4,
    0x1.745ce1e1d1572p-4,
    0x1.3b20202015582p-4,
    0x1.0f67a7995b0a0p-4,
    0x1.0f0a4cd29d9bcp-4,
};

// Largest error 2^-77.0 on [0.0, 0.029437].
inline constexpr double kAtanhTailF64[] = {
    0x1.999999999999ap-3,
    0x1.2492492492363p-3,
    0x1.c71c71c747eb7p-4,
    0x1.745d172bc6efbp-4,
    0x1.3b13ba5b85115p-4,
    0x1.110f1bf1306e6p-4,
    0x1.e265957334cf8p-5,
    0x1.a506f4e767235p-5,
    0x1.ecb38c0f13cbbp-5,
};

// (tanh(x) / x - 1) / x^2 in z = x^2.
// Largest error 2^-27.6 on [0.0, 0.4].
inline constexpr float kTanhF32[] = {
    -0x1.5555300000000p-2f,
    0x1.11067e0000000p-3f,
    -0x1.b824940000000p-5f,
    0x1.5181340000000p-6f,
    -0x1.72d5bc0000000p-8f,
};

// erf(x) / x - 1 in z = x^2.
// Largest error 2^-30.1 on [0.0, 0.81].
inline constexpr float kErfF32[] = {
    0x1.06eba80000000p-3f,
    -0x1.8127400000000p-2f,
    0x1.ce2d3c0000000p-4f,
    -0x1.b7f7440000000p-6f,
    0x1.537bba0000000p-8f,
    -0x1.9703d20000000p-11f,
    0x1.9d9d160000000p-15f,
    0x1.9caec20000000p-17f,
};

// Largest error 2^-56.2 on [0.0, 0.81].
inline constexpr double kErfF64[] = {
    0x1.06eba8214db69p-3,
    -0x1.812746b037a40p-2,
    0x1.ce2f21a0488ebp-4,
    -0x1.b82ce314f2593p-6,
    0x1.565bcd946c46cp-8,
    -0x1.c02dd6bc4f989p-11,
    0x1.f9a8f1a9afd1ap-14,
    -0x1.f5783f07d6aa4p-17,
    0x1.c69d765b5eae5p-20,
    -0x1.0564969ffc861p-22,
    0x1.c56b7b0c4867ap-24,
    -0x1.236eef51aa27dp-24,
    0x1.eb04769d6650ap-26,
    -0x1.72c0b1737d413p-28,
};

// -log(1 - erf(x)) on the rest of the range.
// Largest error 2^-36.5 on [0.89, 3.95].
inline constexpr float kErfLogF32[] = {
    -0x1.5b0a160000000p-14f,
    0x1.2103940000000p+0f,
    0x1.4504c80000000p-1f,
    0x1.b291a40000000p-4f,
    -0x1.79c1ba0000000p-6f,
    0x1.7c2c940000000p-9f,
    0x1.3c40720000000p-14f,
    -0x1.c24ef40000000p-14f,
    0x1.35203a0000000p-16f,
    -0x1.3387780000000p-20f,
};

// exp(x^2) erfc(x) in t = (x - 2.5) / (x + 2.5).
// Largest error 2^-66.3 on [-0.475, 0.42].
inline constexpr double kErfcScaledF64[] = {
    0x1.afbb3f3b7343bp-3,
    -0x1.7ca88dec217a4p-2,
    0x1.01c11a735cd41p-2,
    -0x1.001154371815ap-3,
    0x1.470ba1f6648ecp-5,
    -0x1.05bb2fd7bbeb2p-8,
    -0x1.5a571550e40f4p-9,
    0x1.cb3b72896f041p-11,
    0x1.def06a6595544p-13,
    -0x1.0e5ccb135d717p-13,
    -0x1.1fbbb92538d43p-15,
    0x1.3aff40925d61bp-16,
    0x1.4aec67d5fd055p-17,
    0x1.8f8fc7e667a08p-18,
    0x1.e733302a90611p-17,
    0x1.455dfc88a27bap-16,
    0x1.bc48ed231b575p-17,
    0x1.01912888b57c9p-18,
};

// (sin(x) / x - 1) / x^2 and (cos(x) - 1 + x^2 / 2) / x^4 in z = x^2.
// Largest error 2^-58.0 on [0.0, 0.61697].
inline constexpr double kSinF64[] = {
    -0x1.5555555555549p-3,
    0x1.111111110f8a7p-7,
    -0x1.a01a019c1631fp-13,
    0x1.71de357b21cafp-19,
    -0x1.ae5e6896b24d3p-26,
    0x1.5d939e6a3407dp-33,
};

// Largest error 2^-64.2 on [0.0, 0.61697].
inline constexpr double kCosF64[] = {
    0x1.555555555554cp-5,
    -0x1.6c16c16c15220p-10,
    0x1.a01a019cbf7c1p-16,
    -0x1.27e4f812c2adfp-22,
    0x1.1ee9f155072d1p-29,
    -0x1.8fb12ef24ce3cp-37,
};

// (atan(x) / x - 1) / x^2 in z = x^2.
// Largest error 2^-63.8 on [0.0, 0.17159].
inline constexpr double kAtanF64[] = {
    -0x1.5555555555554p-2,
    0x1.999999999958dp-3,
    -0x1.249249246fe2dp-3,
    0x1.c71c71b4b8192p-4,
    -0x1.745d14612b836p-4,
    0x1.3b1366b35d09bp-4,
    -0x1.110c090f05ce3p-4,
    0x1.e16a3d961115cp-5,
    -0x1.ab4d83adccce7p-5,
    0x1.7031876d8942ep-5,
    -0x1.109286f84b723p-5,
    0x1.eb755ddfcf96fp-7,
};

// (asin(x) / x - 1) / x^2 in z = x^2.
// Largest error 2^-59.8 on [0.0, 0.25].
inline constexpr double kAsinF64[] = {
    0x1.5555555555578p-3,
    0x1.333333332df41p-4,
    0x1.6db6db7227ebdp-5,
    0x1.f1c71a8d51bcep-6,
    0x1.6e8bdfad2cfbep-6,
    0x1.1c49e2995db1dp-6,
    0x1.ca20ca27e4d33p-7,
    0x1.757bcd2582c3fp-7,
    0x1.617123e3ca48dp-7,
    0x1.e2f65b1f194e7p-9,
    0x1.647e1c84a5fdfp-6,
    -0x1.5932dc91f1301p-6,
    0x1.0ba49a20d3712p-5,
};

}  // namespace sgtc::kernels
