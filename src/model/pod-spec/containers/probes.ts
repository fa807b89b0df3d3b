/** Validates probes and lifecycle hooks of containers. */
import type {
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
  PodOS,
  Probe,
  SleepAction,
  TCPSocketAction,
} from '#apis/core/v1.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { httpHeaderName, portName, portNumber } from '#meta/validation/names.ts'
import { nonNegative, oneOf } from '#meta/validation/rules.ts'

interface Handler {
  readonly exec?: ExecAction
  readonly httpGet?: HTTPGetAction
  readonly tcpSocket?: TCPSocketAction
  readonly grpc?: GRPCAction
  readonly sleep?: SleepAction
}

/** All probes of a container; `graceSeconds` is the pod's, undefined if missing. */
export function validateProbes(
  path: FieldPath,
  probes: { readonly livenessProbe?: Probe; readonly readinessProbe?: Probe; readonly startupProbe?: Probe },
  graceSeconds: number | undefined,
): FieldError[] {
  const { livenessProbe, readinessProbe, startupProbe } = probes
  return [
    ...validateRestartingProbe(path.child('livenessProbe'), livenessProbe, graceSeconds),
    ...validateReadinessProbe(path.child('readinessProbe'), readinessProbe, graceSeconds),
    ...validateRestartingProbe(path.child('startupProbe'), startupProbe, graceSeconds),
  ]
}

function validateRestartingProbe(
  path: FieldPath,
  probe: Probe | undefined,
  graceSeconds: number | undefined,
): FieldError[] {
  if (probe === undefined) return []
  const errors = validateProbe(path, probe, graceSeconds)
  const { successThreshold = 0 } = probe
  return successThreshold === 1
    ? errors
    : [...errors, path.child('successThreshold').invalid(successThreshold, 'must be 1')]
}

function validateReadinessProbe(
  path: FieldPath,
  probe: Probe | undefined,
  graceSeconds: number | undefined,
): FieldError[] {
  if (probe === undefined) return []
  const errors = validateProbe(path, probe, graceSeconds)
  const { terminationGracePeriodSeconds: seconds } = probe
  if (seconds === undefined) return errors
  return [
    ...errors,
    path.child('terminationGracePeriodSeconds').invalid(seconds, 'must not be set for readinessProbes'),
  ]
}

const counts = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const

function validateProbe(path: FieldPath, probe: Probe, graceSeconds: number | undefined): FieldError[] {
  const errors = [
    ...validateHandler(path, probe, graceSeconds),
    ...counts.flatMap((name) => nonNegative(path.child(name), probe[name])),
  ]
  const { terminationGracePeriodSeconds: seconds } = probe
  if (seconds === undefined || seconds > 0) return errors
  return [...errors, path.child('terminationGracePeriodSeconds').invalid(seconds, 'must be greater than 0')]
}

/** Lifecycle hooks of a container; a stop signal depends on the operating system. */
export function validateLifecycle(
  path: FieldPath,
  { postStart, preStop, stopSignal }: Lifecycle,
  pod: { readonly graceSeconds: number | undefined; readonly os: PodOS | undefined },
): FieldError[] {
  const hook = (name: string, handler: LifecycleHandler | undefined): FieldError[] =>
    handler === undefined ? [] : validateHandler(path.child(name), handler, pod.graceSeconds)
  return collectErrors(
    hook('postStart', postStart),
    hook('preStop', preStop),
    stopSignal !== undefined && validateStopSignal(path.child('stopSignal'), stopSignal, pod.os),
  )
}

const handlerRules: readonly [
  keyof Handler,
  (path: FieldPath, action: never, grace: number | undefined) => FieldError[],
][] = [
  ['exec', validateExec],
  ['httpGet', validateHttpGet],
  ['tcpSocket', (path: FieldPath, { port }: TCPSocketAction) => validatePort(path.child('port'), port)],
  ['grpc', (path: FieldPath, { port }: GRPCAction) => validatePort(path.child('port'), port)],
  ['sleep', validateSleep],
]

/** Exactly one action; only the first is validated. */
function validateHandler(path: FieldPath, handler: Handler, graceSeconds: number | undefined): FieldError[] {
  const given = handlerRules.filter(([name]) => handler[name] !== undefined)
  if (given.length === 0) return [path.required('must specify a handler type')]
  return given.flatMap(([name, check], at) => {
    const field = path.child(name)
    if (at > 0) return [field.forbidden('may not specify more than 1 handler type')]
    return check(field, handler[name] as never, graceSeconds)
  })
}

function validateExec(path: FieldPath, { command = [] }: ExecAction): FieldError[] {
  return command.length === 0 ? [path.child('command').required()] : []
}

function validateHttpGet(field: FieldPath, action: HTTPGetAction): FieldError[] {
  const { path = '', port, scheme = '', httpHeaders = [] } = action
  return collectErrors(
    path === '' && field.child('path').required(),
    validatePort(field.child('port'), port),
    oneOf(field.child('scheme'), scheme, ['HTTP', 'HTTPS']),
    httpHeaders.flatMap(({ name }) => field.child('httpHeaders').check(name, httpHeaderName)),
  )
}

function validatePort(path: FieldPath, port: number | string): FieldError[] {
  return path.check(port, () => (typeof port === 'number' ? portNumber(port) : portName(port)))
}

/** A missing grace period was already reported. */
function validateSleep(path: FieldPath, { seconds }: SleepAction, graceSeconds: number | undefined): FieldError[] {
  if (graceSeconds === undefined || (seconds >= 0 && seconds <= graceSeconds)) return []
  const limit = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`
  return [path.invalid(seconds, limit)]
}

const windowsSignals = ['SIGKILL', 'SIGTERM']

const linuxSignals = [
  ...'ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP'.split(
    ' ',
  ),
  ...'TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX'.split(' '),
  ...Array.from({ length: 15 }, (_, at) => `RTMIN+${at + 1}`),
  ...Array.from({ length: 14 }, (_, at) => `RTMAX-${at + 1}`),
].map((name) => `SIG${name}`)

function validateStopSignal(path: FieldPath, signal: string, os: PodOS | undefined): FieldError[] {
  if (os === undefined) return [path.forbidden('may not be set for containers with empty `spec.os.name`')]
  const known = os.name === 'windows' ? windowsSignals : os.name === 'linux' ? linuxSignals : undefined
  if (known === undefined || known.includes(signal)) return []
  return [path.notInSet(asJson(signal), known)]
}
