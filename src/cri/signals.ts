/** Maps signals to CRI's signal numbers, which differ from the kernel's. Pure. */
const NAMED =
  'ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU ' +
  'URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN'
const REAL_TIME = [
  ...Array.from({ length: 15 }, (_, at) => `RTMIN+${at + 1}`),
  ...Array.from({ length: 14 }, (_, at) => `RTMAX-${14 - at}`),
  'RTMAX',
]

/** 0 is the signal of the image. */
const NAMES: readonly string[] = ['', ...NAMED.split(' '), ...REAL_TIME]

/** The number of `SIGTERM` and so on. Unset and unknown names mean the signal of the image. */
export function signalNumber(name = ''): number {
  return Math.max(NAMES.indexOf(name.replace(/^SIG/, '')), 0)
}
