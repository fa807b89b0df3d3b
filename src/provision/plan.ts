/**
 * From what is wanted and what is there to the steps between: pure, so that a plan can be shown, tested and made again after any
 * interruption. What is as it should be has no step. The order is that of RKE: see docs/build.md.
 */
import {
  type Addon,
  type DesiredCluster,
  type DesiredFile,
  type DesiredHost,
  type DesiredService,
  manifestFile,
  type Plane,
} from './desired.ts'
import { differentNode } from './node-difference.ts'
import { type Manifest, NO_MANIFEST, type Observed, type ObservedHost } from './observed.ts'
import { portChecks } from './ports.ts'
import { preflight } from './preflight.ts'
import { serviceDigest, sha256 } from './service-digest.ts'
import type { Plan, Step, Track, Wave } from './step.ts'

export interface PlanOptions {
  readonly checksPorts: boolean
  /** Leaves etcd and the control plane alone (`--update-only`). */
  readonly workersOnly: boolean
}

/** So many machines at a time. */
export const MACHINES_AT_ONCE = 50

interface Planning {
  readonly desired: DesiredCluster
  readonly observed: Observed
  readonly options: PlanOptions
  /** Whether there is a cluster already: then changes are rolled out. */
  readonly isRunning: boolean
}

export function planCluster(desired: DesiredCluster, observed: Observed, options: PlanOptions): Plan {
  const planning = { desired, observed, options, isRunning: observed.nodes !== undefined }
  const { faults, notes } = findings(planning)
  const waves = [
    ...portWave(planning),
    wave(
      'files',
      MACHINES_AT_ONCE,
      desired.hosts.map((host) => fileSteps(planning, host)),
    ),
    ...(options.workersOnly ? [] : etcdWaves(planning)),
    ...(options.workersOnly ? [] : [controlPlaneWave(planning)]),
    addonWave(planning, 'access', desired.access),
    stateWave(planning),
    ...workerWaves(planning),
    nodeWave(planning),
    addonWave(planning, 'addons', [...goneAddons(planning), ...desired.addons]),
    wave(
      'tidying up',
      MACHINES_AT_ONCE,
      desired.hosts.map((host) => tidySteps(planning, host)),
    ),
  ]
  return { waves: waves.filter(({ tracks }) => tracks.length > 0), faults, notes }
}

function wave(name: string, width: number, tracks: readonly Track[], tolerates = 0): Wave {
  return { name, width, tolerates, tracks: tracks.filter((track) => track.length > 0) }
}

function findings({ desired, observed }: Planning): { faults: string[]; notes: string[] } {
  const faults: string[] = []
  const notes: string[] = []
  for (const host of desired.hosts) {
    const found = observed.hosts.get(host.name)
    if (found?.state === 'unreachable') faults.push(`${host.name}: ${found.reason}`)
    if (found?.state !== 'seen') continue
    const findings = preflight(host, found.facts, found.askedAt, desired.needs)
    faults.push(...findings.faults)
    notes.push(...findings.notes)
  }
  return { faults, notes }
}

/** Nothing of ours runs there yet. */
function isNew({ observed }: Planning, name: string): boolean {
  return !Object.values(seenOf(observed, name).services).some((service) => service !== undefined)
}

function seenOf(observed: Observed, name: string): Extract<ObservedHost, { state: 'seen' }>['seen'] {
  const found = observed.hosts.get(name)
  return found?.state === 'seen' ? found.seen : { files: {}, services: {} }
}

function manifestOf(observed: Observed, name: string): Manifest {
  const found = observed.hosts.get(name)
  return found?.state === 'seen' ? found.manifest : NO_MANIFEST
}

function portWave(planning: Planning): Wave[] {
  const { desired, options } = planning
  if (!options.checksPorts) return []
  const fresh = new Set(desired.hosts.filter(({ name }) => isNew(planning, name)).map(({ name }) => name))
  const checks = portChecks(desired, (name) => fresh.has(name))
  if (checks.length === 0) return []
  const describe = `check ${checks.length} ports between ${desired.hosts.length} machines`
  return [wave('ports', 1, [[{ host: '', describe, action: { type: 'ports', checks } }]])]
}

/** What a machine is to remember: all that it may have on it, before any of it is there. */
function fileSteps({ desired, observed }: Planning, host: DesiredHost): Step[] {
  const seen = seenOf(observed, host.name)
  const step = (describe: string, action: Step['action']): Step => ({ host: host.name, describe, action })
  const uploads = host.uploads.filter(({ path, sha256: digest }) => seen.files[path]?.digest !== digest)
  const files = host.files.filter((file) => !isWritten(file, seen.files[file.path]))
  const services = host.services.filter((service) => !isServed(service, seen))
  if (uploads.length + files.length + services.length === 0) return []
  const before = manifestOf(observed, host.name)
  const wanted = wantedManifest(host)
  const union = { files: merged(before.files, wanted.files), services: merged(before.services, wanted.services) }
  return [
    ...(isSame(before, union)
      ? []
      : [
          step(`claim ${host.claims.length} folders`, { type: 'claim', paths: host.claims }),
          step('remember what it is to have', {
            type: 'manifest',
            path: manifestFile(desired.home),
            manifest: union,
          }),
        ]),
    ...uploads.map((upload) => step(`send ${upload.path}`, { type: 'upload', upload })),
    ...(files.length === 0 ? [] : [step(`write ${files.length} files`, { type: 'write', files })]),
  ]
}

function isWritten(
  { content, mode, once }: DesiredFile,
  found: { readonly digest: string; readonly mode: number } | undefined,
): boolean {
  if (once === true) return found !== undefined
  return found !== undefined && found.mode === mode && found.digest === sha256(content)
}

function isServed({ spec }: DesiredService, { services }: { services: Record<string, unknown> | object }): boolean {
  const found = (services as Record<string, { digest: string; isRunning: boolean } | undefined>)[spec.name]
  return found !== undefined && found.isRunning && found.digest === serviceDigest(spec)
}

function wantedManifest(host: DesiredHost): Manifest {
  const files = [...host.files.map(({ path }) => path), ...host.uploads.map(({ path }) => path)]
  return { files: files.toSorted(), services: host.services.map(({ spec }) => spec.name).toSorted() }
}

function merged(one: readonly string[], other: readonly string[]): string[] {
  return [...new Set([...one, ...other])].toSorted()
}

function isSame(one: Manifest, other: Manifest): boolean {
  return one.files.join('\n') === other.files.join('\n') && one.services.join('\n') === other.services.join('\n')
}

/** What has no place there any more goes, and then the memory of it. */
function tidySteps({ desired, observed }: Planning, host: DesiredHost): Step[] {
  const before = manifestOf(observed, host.name)
  const wanted = wantedManifest(host)
  const gone = before.files.filter((path) => !wanted.files.includes(path))
  const retired = before.services.filter((name) => !wanted.services.includes(name))
  if (isSame(before, wanted) || gone.length + retired.length === 0) return []
  const step = (describe: string, action: Step['action']): Step => ({ host: host.name, describe, action })
  return [
    ...retired.map((name) => step(`stop ${name} for good`, { type: 'retire', name })),
    ...(gone.length === 0 ? [] : [step(`remove ${gone.length} files`, { type: 'remove', paths: gone })]),
    step('remember what it has', { type: 'manifest', path: manifestFile(desired.home), manifest: wanted }),
  ]
}

function changed({ observed }: Planning, host: DesiredHost, plane: Plane): DesiredService[] {
  const seen = seenOf(observed, host.name)
  return host.services.filter((service) => service.plane === plane && !isServed(service, seen))
}

function serveSteps(host: DesiredHost, services: readonly DesiredService[], waits = true): Step[] {
  return services.map(({ spec, health }) => ({
    host: host.name,
    describe: `start ${spec.name}`,
    action: { type: 'serve', service: spec, ...(waits && health !== undefined && { health }) },
  }))
}

function hostsOf({ hosts }: DesiredCluster, role: Plane): DesiredHost[] {
  return hosts.filter(({ roles }) => roles.includes(role))
}

/**
 * The members of a new cluster find each other, so none is well before most are there: they are started first and asked
 * afterwards. A cluster that is at work gets one member at a time, and each is well before the next.
 */
function etcdWaves(planning: Planning): Wave[] {
  const { desired, observed } = planning
  const hosts = hostsOf(desired, 'etcd').filter((host) => changed(planning, host, 'etcd').length > 0)
  const { members } = observed
  const serve = (host: DesiredHost, waits: boolean): Step[] => serveSteps(host, changed(planning, host, 'etcd'), waits)
  if (members === undefined) {
    const asked = hosts.flatMap((host) =>
      host.services.flatMap(({ plane, spec, health }): Track[] =>
        plane !== 'etcd' || health === undefined
          ? []
          : [
              [
                {
                  host: host.name,
                  describe: `wait until ${spec.name} is well`,
                  action: { type: 'healthy', service: spec.name, health },
                },
              ],
            ],
      ),
    )
    return [
      wave(
        'etcd',
        1,
        hosts.map((host) => serve(host, false)),
      ),
      wave('health of etcd', MACHINES_AT_ONCE, asked),
    ]
  }
  return [
    wave(
      'etcd',
      1,
      hosts.map((host) => [...joinSteps(planning, host), ...serve(host, true)]),
    ),
  ]
}

/** One that was added and never started has no name yet, and still has to be told what it joins. */
function joinSteps({ desired, observed }: Planning, host: DesiredHost): Step[] {
  const { health, memberName, peerUrl, joiningFile } = desired.etcd
  const url = peerUrl(host)
  const known = observed.members?.find(({ peerUrls }) => peerUrls.includes(url))
  if (known !== undefined && known.name !== '') return []
  const through = hostsOf(desired, 'etcd').find((other) =>
    observed.members?.some(({ name, peerUrls }) => name !== '' && peerUrls.includes(peerUrl(other))),
  )
  if (through === undefined) return []
  return [
    {
      host: host.name,
      describe: 'join etcd',
      action: {
        type: 'join-etcd',
        through: through.name,
        health: health(through),
        name: memberName(host),
        peerUrl: url,
        file: joiningFile,
      },
    },
  ]
}

function controlPlaneWave(planning: Planning): Wave {
  const { desired, isRunning } = planning
  const tracks = hostsOf(desired, 'controlplane').map((host) =>
    serveSteps(host, changed(planning, host, 'controlplane')),
  )
  return wave('control plane', isRunning ? desired.upgrade.controlPlanes : MACHINES_AT_ONCE, tracks)
}

/** New nodes all at once. Those that have pods as many as may be away; the ones that are not well have none to lose and come first. */
function workerWaves(planning: Planning): Wave[] {
  const { desired, observed } = planning
  const { workers, drains } = desired.upgrade
  const plan = desired.hosts.map((host) => ({
    host,
    services: changed(planning, host, 'worker'),
    node: observed.nodes?.get(host.name),
  }))
  const todo = plan.filter(({ services }) => services.length > 0)
  const outside = todo.filter(({ node }) => node?.isReady !== true)
  const inside = todo.filter(({ node }) => node?.isReady === true)
  // Also those whose services are as they should be: what was interrupted may have ended before they were ready.
  const unready = plan.filter(({ node }) => node?.isReady !== true)
  const ready = (name: string, uncordons: boolean): Step => ({
    host: name,
    describe: 'wait until the node is ready',
    action: { type: 'ready', node: name, uncordons },
  })
  // Who was left cordoned by an upgrade that was interrupted is found by its mark when the node is looked at.
  const left = plan.filter(
    ({ services, node }) => services.length === 0 && node?.isReady === true && node.annotations[CORDONED] !== undefined,
  )
  return [
    wave(
      'worker plane',
      MACHINES_AT_ONCE,
      outside.map(({ host, services }) => serveSteps(host, services)),
    ),
    wave(
      'nodes ready',
      MACHINES_AT_ONCE,
      unready.map(({ host, node }) => [ready(host.name, node?.annotations[CORDONED] !== undefined)]),
    ),
    wave(
      'upgrade of nodes',
      workers,
      [
        ...inside.map(({ host, services }) => [
          drain(host.name, drains),
          ...serveSteps(host, services),
          ready(host.name, true),
        ]),
        ...left.map(({ host }) => [ready(host.name, true)]),
      ],
      Math.max(0, workers - 1),
    ),
  ]
}

/** Says that it was us who cordoned the node. */
export const CORDONED = 'build.hyperkube.io/cordoned'

function drain(name: string, evicts: boolean): Step {
  const describe = evicts ? 'drain the node' : 'cordon the node'
  return { host: name, describe, action: { type: 'drain', node: name, evicts } }
}

function nodeWave({ desired, observed }: Planning): Wave {
  const tracks = desired.hosts.flatMap((host): Track[] => {
    const difference = differentNode(host.node, observed.nodes?.get(host.name))
    if (difference === undefined) return []
    const action = { type: 'node', node: host.name, desired: host.node, dropped: difference.dropped } as const
    return [[{ host: host.name, describe: `set ${difference.describe}`, action }]]
  })
  return wave('labels and taints', MACHINES_AT_ONCE, tracks)
}

function stateWave({ desired, observed }: Planning): Wave {
  if (observed.savedState === desired.state) return wave('state', 1, [])
  const action = { type: 'save-state', state: desired.state } as const
  return wave('state', 1, [[{ host: '', describe: 'save the state in the cluster', action }]])
}

/** One after the other, as later ones may need what earlier ones bring. */
function addonWave({ observed }: Planning, name: string, addons: readonly Addon[]): Wave {
  const tracks = addons.flatMap((addon): Track[] => {
    const before = observed.addons.get(addon.name) ?? ''
    if (before === addon.manifest) return []
    const describe = addon.manifest === '' ? `remove addon ${addon.name}` : `apply addon ${addon.name}`
    return [[{ host: '', describe, action: { type: 'addon', name: addon.name, manifest: addon.manifest, before } }]]
  })
  return wave(name, 1, tracks, addons.filter(({ isOptional }) => isOptional === true).length)
}

function goneAddons({ desired, observed }: Planning): Addon[] {
  const wanted = new Set([...desired.access, ...desired.addons].map(({ name }) => name))
  return [...observed.addons.keys()].filter((name) => !wanted.has(name)).map((name) => ({ name, manifest: '' }))
}
