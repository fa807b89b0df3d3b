/**
 * Plans the steps that bring a cluster from the observed to the desired state. Pure, so that a plan can be printed,
 * tested and recomputed after an interruption. A part that already matches needs no step. The order is RKE's: see
 * docs/build.md.
 */
import { type Addon, type DesiredCluster, type DesiredFile, type DesiredHost, manifestFile } from '../desired.ts'
import { sha256 } from '../service-digest.ts'
import { etcdWaves, membershipFaults } from './etcd-waves.ts'
import { leavingNotes, leavingWave } from './leaving.ts'
import { nodeWave, workerWaves } from './node-waves.ts'
import type { Manifest, Observed } from './observed.ts'
import {
  changed,
  clearingSteps,
  clearsWith,
  hostsOf,
  isServed,
  manifestOf,
  type PlanContext,
  type PlanOptions,
  retireSteps,
  seenOf,
  serveSteps,
  unwantedServices,
  wave,
} from './planning.ts'
import { portChecks } from './ports.ts'
import { preflight } from './preflight.ts'
import { MACHINES_AT_ONCE, type Plan, type Step, type Track, type Wave } from './step.ts'

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
    addonWave(planning, 'addons', [...goneAddons(planning), ...desired.addons.filter(isNeeded)]),
    addonWave(
      planning,
      'user addons',
      desired.addons.filter((addon) => !isNeeded(addon)),
    ),
    wave(
      'tidying up',
      MACHINES_AT_ONCE,
      desired.hosts.map((host) => tidySteps(planning, host)),
    ),
    leavingWave(planning),
  ]
  return { waves: waves.filter(({ tracks }) => tracks.length > 0), faults, notes }
}

function findings(planning: PlanContext): { faults: string[]; notes: string[] } {
  const { desired, observed } = planning
  const faults = membershipFaults(planning)
  const notes = leavingNotes(planning)
  for (const host of desired.hosts) {
    const found = observed.hosts.get(host.name)
    if (found?.state === 'unreachable') faults.push(`${host.name}: ${found.reason}`)
    if (found?.state !== 'seen') continue
    const findings = preflight(host, found.facts, found.observedAt, desired.needs)
    faults.push(...findings.faults)
    notes.push(...findings.notes)
  }
  return { faults, notes }
}

/** Nothing of ours runs there yet. */
function isNew({ observed }: PlanContext, name: string): boolean {
  return !Object.values(seenOf(observed, name).services).some((service) => service !== undefined)
}

function portWave(planning: PlanContext): Wave[] {
  const { desired, options } = planning
  if (!options.checksPorts) return []
  const fresh = new Set(desired.hosts.filter(({ name }) => isNew(planning, name)).map(({ name }) => name))
  const checks = portChecks(desired, (name) => fresh.has(name))
  if (checks.length === 0) return []
  const describe = `check ${checks.length} ports between ${desired.hosts.length} machines`
  return [wave('ports', 1, [[{ host: '', describe, action: { type: 'ports', checks } }]])]
}

/** The manifest of a machine lists everything it may have, before any of it exists. */
function fileSteps({ desired, observed }: PlanContext, host: DesiredHost): Step[] {
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
          step('record the desired state', {
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

/** Removes what is no longer desired, and then its record. */
function tidySteps(planning: PlanContext, host: DesiredHost): Step[] {
  const { desired, observed } = planning
  const before = manifestOf(observed, host.name)
  const wanted = wantedManifest(host)
  const gone = before.files.filter((path) => !wanted.files.includes(path))
  const unwanted = unwantedServices(planning, host)
  if (isSame(before, wanted) || gone.length + unwanted.length === 0) return []
  const step = (describe: string, action: Step['action']): Step => ({ host: host.name, describe, action })
  const { service: etcd, dataDir } = desired.etcd
  const left = clearsWith(planning, host) === undefined ? unwanted : unwanted.filter((name) => name === etcd)
  return [
    ...left.flatMap((name) => retireSteps(host, name)),
    // Its member has left, so the data is useless.
    ...(unwanted.includes(etcd) ? [step('clear the data of etcd', { type: 'remove', paths: [dataDir] })] : []),
    ...(gone.length === 0 ? [] : [step(`remove ${gone.length} files`, { type: 'remove', paths: gone })]),
    step('record the new state', { type: 'manifest', path: manifestFile(desired.home), manifest: wanted }),
  ]
}

function controlPlaneWave(planning: PlanContext): Wave {
  const { desired, isRunning } = planning
  const tracks = hostsOf(desired, 'controlplane').map((host): Track => {
    const services = changed(planning, host, 'controlplane')
    const clearing = clearsWith(planning, host) === 'controlplane' ? clearingSteps(planning, host) : []
    return services.length === 0 ? [] : [...clearing, ...serveSteps(host, services)]
  })
  return wave('control plane', isRunning ? desired.upgrade.controlPlanes : MACHINES_AT_ONCE, tracks)
}

function stateWave({ desired, observed }: PlanContext): Wave {
  if (observed.savedState === desired.state) return wave('state', 1, [])
  const action = { type: 'save-state', state: desired.state } as const
  return wave('state', 1, [[{ host: '', describe: 'save the state in the cluster', action }]])
}

/** One after the other, because later addons may depend on earlier ones. */
function addonWave({ observed }: PlanContext, name: string, addons: readonly Addon[]): Wave {
  const tracks = addons.flatMap((addon): Track[] => {
    const before = observed.addons.get(addon.name) ?? ''
    if (before === addon.manifest) return []
    const describe = addon.manifest === '' ? `remove addon ${addon.name}` : `apply addon ${addon.name}`
    return [[{ host: '', describe, action: { type: 'addon', name: addon.name, manifest: addon.manifest, before } }]]
  })
  return wave(name, 1, tracks, addons.filter(({ isOptional }) => isOptional === true).length)
}

function isNeeded({ isOptional }: Addon): boolean {
  return isOptional !== true
}

function goneAddons({ desired, observed }: PlanContext): Addon[] {
  const wanted = new Set([...desired.access, ...desired.addons].map(({ name }) => name))
  return [...observed.addons.keys()].filter((name) => !wanted.has(name)).map((name) => ({ name, manifest: '' }))
}
