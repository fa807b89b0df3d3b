/**
 * Validates the flags and turns them into a plan. Pure: it only names files. It reports all errors at once, with
 * upstream's texts where they exist.
 */
import { admissionFlagErrors } from '#admission/index.ts'
import type { EndpointReconciler } from '#apiserver/bootstrap/kubernetes-service.ts'
import type { PortRange } from '#component/flags/flag-kinds.ts'
import { findGates } from '#component/flags/gate-reach.ts'
import { createGates, gateErrors } from '#component/flags/gates.ts'
import { metricsErrors } from '#component/flags/metrics-flags.ts'
import { attempt, planServing, servingErrors, type ServingPlan } from '#component/flags/serving-plan.ts'
import { pinsHost } from '#component/requests/cors.ts'
import { parseCidr } from '#lib/net/cidr.ts'
import { compileRegexp } from '#lib/regexp.ts'

import { auditErrors } from './audit-plan.ts'
import { authenticationErrors } from './authentication-plan.ts'
import type { Settings } from './flags.ts'
import { gatedResources, goneVersions, type RuntimeConfig, runtimeConfigErrors } from './runtime-config.ts'

export interface DatastorePlan {
  /** In the form of `openBackend`; a relative sqlite path stays relative. */
  readonly location: string
  readonly historyMs: number
  readonly caFile: string
  readonly certFile: string
  readonly keyFile: string
}

export interface ServerPlan {
  readonly serving: ServingPlan
  readonly datastore: DatastorePlan
  /** Objects are stored as JSON unless protobuf is configured. */
  readonly storesProtobuf: boolean
  readonly authorizationModes: readonly string[]
  readonly allowsAnonymous: boolean
  /** True if `--anonymous-auth` was given: a file may configure it too, but not both. */
  readonly hasAnonymousFlag: boolean
  /** One block, or one of each family. */
  readonly serviceCidr: string
  readonly nodePorts: PortRange
  readonly endpoints: EndpointReconciler
  readonly runtimeConfig: RuntimeConfig
  readonly apiAudiences: readonly string[]
  /** A header of every response; empty: none. */
  readonly hsts: string
}

export interface Planned {
  /** Absent if there are errors. */
  readonly plan?: ServerPlan
  readonly errors: readonly string[]
  readonly notes: readonly string[]
}

/** The default range of a local cluster; upstream warns too. */
const DEFAULT_SERVICE_CIDR = '10.0.0.0/24'

/** `changed` are the flags that were given. */
export function planServer(flags: Settings, changed: ReadonlySet<string> = new Set()): Planned {
  const modes = modesOf(flags)
  const errors = [
    ...storageErrors(flags),
    ...servingErrors(flags),
    ...genericErrors(flags),
    ...auditErrors(flags),
    ...authenticationErrors(flags, changed),
    ...authorizationErrors(flags, modes, changed),
    ...admissionFlagErrors({ enable: flags['enable-admission-plugins'], disable: flags['disable-admission-plugins'] }),
    ...gateErrors(flags['feature-gates']),
    ...findGates(flags['feature-gates']).errors,
    ...runtimeConfigErrors(flags['runtime-config']),
    ...networkErrors(flags),
    ...metricsErrors(flags),
  ]
  const notes = findNotes(flags, modes)
  if (errors.length > 0) return { errors, notes }
  const plan: ServerPlan = {
    serving: planServing(flags),
    datastore: planDatastore(flags),
    storesProtobuf: changed.has('storage-media-type') && flags['storage-media-type'] !== 'application/json',
    authorizationModes: modes,
    // Anonymous users must not be allowed everything.
    allowsAnonymous: flags['anonymous-auth'] && !modes.includes('AlwaysAllow'),
    hasAnonymousFlag: changed.has('anonymous-auth'),
    serviceCidr: flags['service-cluster-ip-range'] || DEFAULT_SERVICE_CIDR,
    nodePorts: flags['service-node-port-range'],
    endpoints: { type: reconcilerType(flags) ?? 'lease', count: flags['apiserver-count'] },
    runtimeConfig: flags['runtime-config'],
    apiAudiences:
      flags['api-audiences'].length === 0 ? flags['service-account-issuer'].slice(0, 1) : flags['api-audiences'],
    hsts: flags['strict-transport-security-directives'].join('; '),
  }
  return { plan, errors, notes }
}

function findNotes(flags: Settings, modes: readonly string[]): string[] {
  const notes = [
    ...findGates(flags['feature-gates']).notes,
    ...goneVersions(flags['runtime-config']).map(
      (version) => `--runtime-config=${version} has no effect: this version is not served any more`,
    ),
    ...gatedResources(flags['runtime-config'], createGates(flags['feature-gates'])),
  ]
  if (flags['anonymous-auth'] && modes.includes('AlwaysAllow')) {
    notes.push(
      'AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer',
    )
  }
  if (flags['service-cluster-ip-range'] === '') {
    notes.push(
      `No addresses for Services given: "${DEFAULT_SERVICE_CIDR}" it is; say so with --service-cluster-ip-range`,
    )
  }
  return notes
}

function storageErrors(flags: Settings): string[] {
  const { datastore } = flags
  const servers = flags['etcd-servers']
  const mediaType = flags['storage-media-type']
  const errors: string[] = []
  if (servers.length === 0 && datastore === '') errors.push('--etcd-servers must be specified')
  if (servers.length > 0 && datastore !== '') errors.push('--etcd-servers and --datastore cannot both be given')
  if (!/^\/?registry\/?$/.test(flags['etcd-prefix'])) {
    errors.push(`--etcd-prefix=${flags['etcd-prefix']} is not supported: keys begin with "/registry"`)
  }
  if (!['application/json', 'application/vnd.kubernetes.protobuf'].includes(mediaType)) {
    errors.push(
      `--storage-media-type "${mediaType}" invalid, allowed values: application/json, application/vnd.kubernetes.protobuf`,
    )
  }
  if ((flags['etcd-certfile'] === '') !== (flags['etcd-keyfile'] === '')) {
    errors.push('--etcd-certfile and --etcd-keyfile should be specified together')
  }
  if (flags['encryption-provider-config-automatic-reload'] && flags['encryption-provider-config'] === '') {
    errors.push('--encryption-provider-config-automatic-reload must be set with --encryption-provider-config')
  }
  return errors
}

function planDatastore(flags: Settings): DatastorePlan {
  const intervalMs = flags['etcd-compaction-interval']
  return {
    location: flags.datastore === '' ? flags['etcd-servers'].join(',') : flags.datastore,
    historyMs: intervalMs === 0 ? Infinity : intervalMs,
    caFile: flags['etcd-cafile'],
    certFile: flags['etcd-certfile'],
    keyFile: flags['etcd-keyfile'],
  }
}

const NOT_NEGATIVE = [
  'max-requests-inflight',
  'max-mutating-requests-inflight',
  'request-timeout',
  'min-request-timeout',
  'shutdown-delay-duration',
] as const

function genericErrors(flags: Settings): string[] {
  const errors = NOT_NEGATIVE.filter((name) => flags[name] < 0).map((name) => `--${name} can not be negative value`)
  const [reads, writes] = [flags['max-requests-inflight'], flags['max-mutating-requests-inflight']]
  if (flags['enable-priority-and-fairness'] && reads + writes <= 0) {
    const what = `MaxRequestsInFlight=${reads} and MaxMutatingRequestsInFlight=${writes}`
    errors.push(`invalid configuration: ${what}; they must add up to something positive`)
  }
  for (const version of flags['emulated-version'].filter((text) => text !== '')) {
    if (!/^(?:kube=)?v?1\.36(?:\.\d+)?$/.test(version)) {
      errors.push(`--emulated-version=${version} is not supported: this is version 1.36 and emulates no other`)
    }
  }
  for (const pattern of flags['cors-allowed-origins']) errors.push(...corsErrors(pattern))
  const isDirective = (text: string): boolean => /^(?:max-age=\d+|includeSubDomains|preload)$/.test(text)
  for (const directive of flags['strict-transport-security-directives'].filter((text) => !isDirective(text))) {
    errors.push(
      `--strict-transport-security-directives invalid: "${directive}"; allowed values: max-age=expireTime, includeSubDomains, preload`,
    )
  }
  return errors
}

function corsErrors(pattern: string): string[] {
  if (pattern === '') return ['empty value in --cors-allowed-origins']
  const problem =
    attempt(() => compileRegexp(pattern))[0] ??
    (pinsHost(pattern) ? undefined : 'regular expression does not pin to start/end of host in the origin header')
  return problem === undefined ? [] : [`--cors-allowed-origins has an invalid regular expression: ${problem}`]
}

const MODES: ReadonlySet<string> = new Set(['AlwaysAllow', 'AlwaysDeny', 'Webhook', 'RBAC', 'Node'])

/** Empty if a file configures the authorizers. */
function modesOf(flags: Settings): readonly string[] {
  const modes = flags['authorization-mode']
  if (flags['authorization-config'] !== '') return []
  return modes.length === 0 ? ['AlwaysAllow'] : modes
}

const LEGACY_AUTHORIZATION = [
  'authorization-mode',
  'authorization-webhook-config-file',
  'authorization-webhook-version',
  'authorization-webhook-cache-authorized-ttl',
  'authorization-webhook-cache-unauthorized-ttl',
]

function authorizationErrors(flags: Settings, modes: readonly string[], changed: ReadonlySet<string>): string[] {
  if (flags['authorization-config'] !== '') {
    const clash =
      '--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined'
    return LEGACY_AUTHORIZATION.some((name) => changed.has(name)) ? [clash] : []
  }
  const file = flags['authorization-webhook-config-file']
  const errors = modes
    .filter((mode) => !MODES.has(mode))
    .map((mode) =>
      mode === 'ABAC'
        ? 'authorization-mode "ABAC" is not supported: use RBAC'
        : `authorization-mode "${mode}" is not a valid mode`,
    )
  if (modes.includes('Webhook') && file === '') {
    errors.push("authorization-mode Webhook's authorization config file not passed")
  }
  if (!modes.includes('Webhook') && file !== '') {
    errors.push('cannot specify --authorization-webhook-config-file without mode Webhook')
  }
  if (new Set(modes).size < modes.length) {
    errors.push(`authorization-mode ${JSON.stringify(modes)} has mode specified more than once`)
  }
  return errors
}

/** Blocks must not be larger than upstream can allocate from. */
const MAX_CIDR_BITS = 20

function networkErrors(flags: Settings): string[] {
  const text = flags['service-cluster-ip-range']
  const files = ['proxy-client', 'kubelet-client'] as const
  const errors: string[] = []
  if ((flags['proxy-client-cert-file'] === '') !== (flags['proxy-client-key-file'] === '')) {
    errors.push(`--${files[0]}-cert-file and --${files[0]}-key-file should be specified together`)
  }
  if ((flags['kubelet-client-certificate'] === '') !== (flags['kubelet-client-key'] === '')) {
    errors.push(`--${files[1]}-certificate and --${files[1]}-key should be specified together`)
  }
  if (flags['event-ttl'] <= 0) errors.push('--event-ttl must be greater than 0')
  if (reconcilerType(flags) === undefined) {
    errors.push(`Reconciler not implemented: ${flags['endpoint-reconciler-type']}`)
  }
  if (flags['apiserver-count'] <= 0) {
    errors.push(`--apiserver-count should be a positive number, but value '${flags['apiserver-count']}' provided`)
  }
  errors.push(...coordinationErrors(flags), ...familyErrors(flags))
  return text === '' ? errors : [...errors, ...cidrErrors(text.split(','))]
}

function coordinationErrors(flags: Settings): string[] {
  const [lease, deadline, retry] = ['lease-duration', 'renew-deadline', 'retry-period'] as const
  const start = '--coordinated-leadership'
  const isLonger = (one: typeof lease | typeof deadline, other: typeof deadline | typeof retry): boolean =>
    flags[`coordinated-leadership-${one}`] > flags[`coordinated-leadership-${other}`]
  return [
    ...(isLonger(lease, deadline) ? [] : [`${start}-${lease} must be greater than ${start}-${deadline}`]),
    ...(isLonger(deadline, retry) ? [] : [`${start}-${deadline} must be greater than ${start}-${retry}`]),
  ]
}

/** The Service "kubernetes" and its endpoints must have the same family. */
function familyErrors(flags: Settings): string[] {
  const [primary = ''] = (flags['service-cluster-ip-range'] || DEFAULT_SERVICE_CIDR).split(',')
  const address = flags['advertise-address']
  if (address === '' || reconcilerType(flags) === 'none' || address.includes(':') === primary.includes(':')) return []
  return [`service IP family "${primary}" must match public address family "${address}"`]
}

const RECONCILERS = ['lease', 'master-count', 'none'] as const

function reconcilerType(flags: Settings): EndpointReconciler['type'] | undefined {
  const wanted = flags['endpoint-reconciler-type'] || 'lease'
  return RECONCILERS.find((type) => type === wanted)
}

function cidrErrors(texts: readonly string[]): string[] {
  if (texts.length > 2) return ['--service-cluster-ip-range must not contain more than two entries']
  const blocks = texts.map((text) => parseCidr(text.trim()))
  const errors: string[] = []
  for (const [at, block] of blocks.entries()) {
    if (block === undefined) {
      errors.push(`--service-cluster-ip-range: "${texts[at]}" is not a CIDR block`)
      continue
    }
    const bits = block.family === 4 ? 32 : 128
    if (bits - block.prefixLength > MAX_CIDR_BITS && block.family === 4) {
      errors.push(
        `specified --service-cluster-ip-range is too large; for ${bits}-bit addresses, the mask must be >= ${bits - MAX_CIDR_BITS}`,
      )
    }
  }
  const [first, second] = blocks
  if (first !== undefined && second !== undefined && first.family === second.family) {
    errors.push('--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family')
  }
  return errors
}
