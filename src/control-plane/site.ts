/**
 * Where one server is put together: its settings and what they come to, the machine as it may use it, and the stack on
 * which everything is put that must be closed again. Every part is made from this and from the parts before it.
 */
import type { Interfere } from '#apiserver/call.ts'
import type { Network } from '#apiserver/connect/address-rule.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import type { Logger } from '#lib/log.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { versionInfo } from '#model/version.ts'
import type { Backend } from '#storage/backend.ts'
import type { OpenBackendOptions } from '#storage/index.ts'

import { APISERVER_FLAGS, type Settings } from './flags/flags.ts'
import { createGates } from './flags/gates.ts'
import { planServer, type ServerPlan } from './flags/plan.ts'
import { createLiveFiles, type LiveFiles } from './live-files.ts'
import { createServerMetrics, loadMetricSettings, type ServerMetrics } from './metrics.ts'

/** What a server may touch besides its store and its port. */
export interface Surroundings extends Pick<ProgramContext, 'clock' | 'random' | 'cwd' | 'stdout' | 'readFile'> {
  readonly log: Logger
  /** Changes how much the log says; absent: it stays what it is. */
  readonly setVerbosity?: (level: number) => void
  /** Which settings somebody chose: some may not be chosen together. Default: none. */
  readonly changed?: ReadonlySet<string>
  /** What the server calls itself, when not what it is. */
  readonly version?: string | undefined
  /** Where objects are, instead of where the settings say. Closed with the server. */
  readonly openStore?: (options: OpenBackendOptions) => Promise<Backend>
  /** How nodes, pods and services are found and reached; default: as the machine does. */
  readonly network?: Network
  /** What may go wrong with requests; default: nothing does on purpose. */
  readonly interfere?: Interfere
  /** Addresses beside that of the settings on which it listens too, at the same port. */
  readonly alsoAt?: readonly string[]
  /** Called with the name of every feature gate that the server reads. */
  readonly onGateRead?: (gate: string) => void
  /** How long requests may still run when the server stops; default: as long as any may. */
  readonly graceMs?: number
}

export interface Site extends Surroundings {
  readonly settings: Settings
  readonly plan: ServerPlan
  readonly isEnabled: (gate: string) => boolean
  readonly files: LiveFiles
  readonly metrics: ServerMetrics['meters']
  /** Closed in reverse when the server ends, or does not come up. */
  readonly closing: AsyncDisposableStack
}

/** Throws ProgramError with everything that is wrong with the settings. */
export async function openSite(settings: Settings, around: Surroundings, closing: AsyncDisposableStack): Promise<Site> {
  const plan = checkSettings(settings, around)
  const isEnabled = createGates(settings['feature-gates'], around.onGateRead)
  const files = createLiveFiles(around)
  closing.defer(() => files.close())
  const shown = await loadMetricSettings(settings, around.readFile)
  const { clock, version } = around
  // A metric lists all gates: that is no reading.
  const listed = createGates(settings['feature-gates'])
  const { meters } = closing.use(
    createServerMetrics({ clock, version: versionInfo(version), isEnabled: listed, settings: shown }),
  )
  return { ...around, settings, plan, isEnabled, files, metrics: meters, closing }
}

function checkSettings(settings: Settings, { changed = new Set(), log }: Surroundings): ServerPlan {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  const support = findUnsupported(APISERVER_FLAGS, values, changed)
  const planned = planServer(settings, changed)
  const errors = [...support.errors, ...planned.errors]
  if (errors.length > 0 || planned.plan === undefined) {
    throw new ProgramError(errors.length === 1 ? errors.join() : `[${errors.join(', ')}]`)
  }
  for (const note of [...support.notes, ...planned.notes]) log.info(note)
  return planned.plan
}
