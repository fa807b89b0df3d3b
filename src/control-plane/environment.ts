/**
 * The inputs that all parts of an API server share: settings, plan of the flags, access to the machine, and the stack
 * of disposables. Every part is built from this and from earlier parts.
 */
import { hostname } from 'node:os'

import type { Network } from '#apiserver/connect/address-rule.ts'
import { createGates } from '#component/flags/gates.ts'
import { createLiveFiles, type LiveFiles } from '#component/live-files.ts'
import { createServerMetrics, loadMetricSettings, type ServerMetrics } from '#component/metrics.ts'
import type { Interfere } from '#component/requests/call.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import type { Logger } from '#lib/log/log.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { versionInfo } from '#model/version.ts'
import type { Backend } from '#storage/backend.ts'
import type { OpenBackendOptions } from '#storage/index.ts'

import { APISERVER_FLAGS, type Settings } from './flags/flags.ts'
import { planServer, type ServerPlan } from './flags/plan.ts'

/** The dependencies of a server besides its store and its port. */
export interface EnvironmentOptions extends Pick<ProgramContext, 'clock' | 'random' | 'cwd' | 'stdout' | 'readFile'> {
  readonly log: Logger
  /** The name of this machine; default: the real one. */
  readonly host?: string
  /** Changes the log level; absent: it is fixed. */
  readonly setVerbosity?: (level: number) => void
  /** The explicitly set flags, because some exclude each other. Default: none. */
  readonly changed?: ReadonlySet<string>
  /** The reported version, if not the real one. */
  readonly version?: string | undefined
  /** Opens the store instead of the one in the settings. Closed with the server. */
  readonly openStore?: (options: OpenBackendOptions) => Promise<Backend>
  /** Resolution and connections to nodes, pods and services; default: the machine's. */
  readonly network?: Network
  /** Fault injection into requests; default: none. */
  readonly interfere?: Interfere
  /** Additional addresses to listen on, at the same port. */
  readonly extraAddresses?: readonly string[]
  /** Called with the name of every feature gate that the server reads. */
  readonly onGateRead?: (gate: string) => void
  /** The grace period for running requests when the server stops; default: the request timeout. */
  readonly graceMs?: number
}

export interface Environment extends EnvironmentOptions {
  readonly host: string
  readonly settings: Settings
  readonly plan: ServerPlan
  readonly isEnabled: (gate: string) => boolean
  readonly files: LiveFiles
  readonly metrics: ServerMetrics['meters']
  /** Closed in reverse order when the server ends or fails to start. */
  readonly closing: AsyncDisposableStack
}

/** Throws ProgramError with all errors of the settings. */
export async function openEnvironment(
  settings: Settings,
  options: EnvironmentOptions,
  closing: AsyncDisposableStack,
): Promise<Environment> {
  const plan = checkSettings(settings, options)
  const isEnabled = createGates(settings['feature-gates'], options.onGateRead)
  const files = createLiveFiles(options)
  closing.defer(() => files.close())
  const shown = await loadMetricSettings(settings, options.readFile)
  const { clock, version, host = hostname() } = options
  // A metric lists all gates, which does not count as reading them.
  const listed = createGates(settings['feature-gates'])
  const { meters } = closing.use(
    createServerMetrics({ clock, version: versionInfo(version), isEnabled: listed, settings: shown }),
  )
  return { ...options, host, settings, plan, isEnabled, files, metrics: meters, closing }
}

function checkSettings(settings: Settings, { changed = new Set(), log }: EnvironmentOptions): ServerPlan {
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
