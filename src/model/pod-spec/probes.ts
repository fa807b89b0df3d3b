/** Probes and lifecycle hooks: the ways of poking a container. */
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
import { asJson, child, type FieldError, forbidden, invalid, notInSet, required } from '#meta/validation/field-error.ts'
import { httpHeaderName, portName, portNumber } from '#meta/validation/names.ts'
import { complaining, nonNegative } from '#meta/validation/rules.ts'

import { oneOf } from './checks.ts'

interface Handler {
  readonly exec?: ExecAction
  readonly httpGet?: HTTPGetAction
  readonly tcpSocket?: TCPSocketAction
  readonly grpc?: GRPCAction
  readonly sleep?: SleepAction
}

/** All probes of a container; `graceSeconds` is the pod's, undefined when that is missing. */
export function validateProbes(
  path: string,
  probes: { readonly livenessProbe?: Probe; readonly readinessProbe?: Probe; readonly startupProbe?: Probe },
  graceSeconds: number | undefined,
): FieldError[] {
  const { livenessProbe, readinessProbe, startupProbe } = probes
  return [
    ...validateRestartingProbe(child(path, 'livenessProbe'), livenessProbe, graceSeconds),
    ...validateReadinessProbe(child(path, 'readinessProbe'), readinessProbe, graceSeconds),
    ...validateRestartingProbe(child(path, 'startupProbe'), startupProbe, graceSeconds),
  ]
}

function validateRestartingProbe(
  path: string,
  probe: Probe | undefined,
  graceSeconds: number | undefined,
): FieldError[] {
  if (probe === undefined) return []
  const errors = validateProbe(path, probe, graceSeconds)
  const { successThreshold = 0 } = probe
  return successThreshold === 1
    ? errors
    : [...errors, invalid(child(path, 'successThreshold'), successThreshold, 'must be 1')]
}

function validateReadinessProbe(
  path: string,
  probe: Probe | undefined,
  graceSeconds: number | undefined,
): FieldError[] {
  if (probe === undefined) return []
  const errors = validateProbe(path, probe, graceSeconds)
  const { terminationGracePeriodSeconds: seconds } = probe
  if (seconds === undefined) return errors
  return [
    ...errors,
    invalid(child(path, 'terminationGracePeriodSeconds'), seconds, 'must not be set for readinessProbes'),
  ]
}

const counts = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const

function validateProbe(path: string, probe: Probe, graceSeconds: number | undefined): FieldError[] {
  const errors = [
    ...validateHandler(path, probe, graceSeconds),
    ...counts.flatMap((name) => nonNegative(child(path, name), probe[name])),
  ]
  const { terminationGracePeriodSeconds: seconds } = probe
  if (seconds === undefined || seconds > 0) return errors
  return [...errors, invalid(child(path, 'terminationGracePeriodSeconds'), seconds, 'must be greater than 0')]
}

/** Hooks of a container; a signal needs to know the system it is for. */
export function validateLifecycle(
  path: string,
  { postStart, preStop, stopSignal }: Lifecycle,
  pod: { readonly graceSeconds: number | undefined; readonly os: PodOS | undefined },
): FieldError[] {
  const hook = (name: string, handler: LifecycleHandler | undefined): FieldError[] =>
    handler === undefined ? [] : validateHandler(child(path, name), handler, pod.graceSeconds)
  return [
    ...hook('postStart', postStart),
    ...hook('preStop', preStop),
    ...(stopSignal === undefined ? [] : validateStopSignal(child(path, 'stopSignal'), stopSignal, pod.os)),
  ]
}

const handlerRules: readonly [
  keyof Handler,
  (field: string, action: never, grace: number | undefined) => FieldError[],
][] = [
  ['exec', validateExec],
  ['httpGet', validateHttpGet],
  ['tcpSocket', (field: string, { port }: TCPSocketAction) => validatePort(child(field, 'port'), port)],
  ['grpc', (field: string, { port }: GRPCAction) => validatePort(child(field, 'port'), port)],
  ['sleep', validateSleep],
]

/** Exactly one kind of action; only the first one found is looked at closely. */
function validateHandler(path: string, handler: Handler, graceSeconds: number | undefined): FieldError[] {
  const given = handlerRules.filter(([name]) => handler[name] !== undefined)
  if (given.length === 0) return [required(path, 'must specify a handler type')]
  return given.flatMap(([name, check], at) => {
    const field = child(path, name)
    if (at > 0) return [forbidden(field, 'may not specify more than 1 handler type')]
    return check(field, handler[name] as never, graceSeconds)
  })
}

function validateExec(field: string, { command = [] }: ExecAction): FieldError[] {
  return command.length === 0 ? [required(child(field, 'command'))] : []
}

function validateHttpGet(field: string, action: HTTPGetAction): FieldError[] {
  const { path = '', port, scheme = '', httpHeaders = [] } = action
  return [
    ...(path === '' ? [required(child(field, 'path'))] : []),
    ...validatePort(child(field, 'port'), port),
    ...oneOf(child(field, 'scheme'), scheme, ['HTTP', 'HTTPS']),
    ...httpHeaders.flatMap(({ name }) => complaining(child(field, 'httpHeaders'), name, httpHeaderName(name))),
  ]
}

function validatePort(field: string, port: number | string): FieldError[] {
  return complaining(field, port, typeof port === 'number' ? portNumber(port) : portName(port))
}

/** Without a grace period the pod is refused anyway; one complaint is enough. */
function validateSleep(field: string, { seconds }: SleepAction, graceSeconds: number | undefined): FieldError[] {
  if (graceSeconds === undefined || (seconds >= 0 && seconds <= graceSeconds)) return []
  const limit = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`
  return [invalid(field, seconds, limit)]
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

function validateStopSignal(field: string, signal: string, os: PodOS | undefined): FieldError[] {
  if (os === undefined) return [forbidden(field, 'may not be set for containers with empty `spec.os.name`')]
  const known = os.name === 'windows' ? windowsSignals : os.name === 'linux' ? linuxSignals : undefined
  if (known === undefined || known.includes(signal)) return []
  return [notInSet(field, asJson(signal), known)]
}
