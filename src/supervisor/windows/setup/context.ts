/**
 * The context that all set-up steps of a Windows worker receive: the machine, the cluster, settings, paths and a
 * signal.
 */
import { sleep } from '#lib/clock.ts'

import { CrashError } from '../../outcome.ts'
import type { WindowsHost } from '../windows-host.ts'
import type { ClusterEndpoint, Management } from './documents.ts'
import { setupPaths, type SetupPaths, type SetupSettings } from './settings.ts'

/** Programs other than kubelet that connect to the API server. */
export type Component = 'kube-proxy' | 'flannel'

/** Queries and changes of the cluster. */
export interface ClusterView {
  /** The cluster IP of the Service in kube-system whose name contains `dns`. Rejects if it does not exist. */
  dnsServiceIp(): Promise<string>
  isNodeThere(name: string): Promise<boolean>
  /** There may be none. */
  deleteNode(name: string): Promise<void>
  endpoint(): Promise<ClusterEndpoint>
  /** PEM of the authority that signs client and kubelet certificates. Rejects without one. */
  clientAuthority(): Promise<string>
  /** A token that allows a kubelet to request a node certificate. */
  joinToken(): Promise<string>
  /** A token with the rights of the component for this node only; repeated calls return the same one. */
  componentToken(component: Component, node: string): Promise<string>
  /** Revokes the token. */
  revoke(component: Component, node: string): Promise<void>
}

export interface SetupContext {
  readonly host: WindowsHost
  readonly cluster: ClusterView
  readonly settings: SetupSettings
  readonly paths: SetupPaths
  readonly signal: AbortSignal
}

export function setupContext(options: Omit<SetupContext, 'paths'>): SetupContext {
  return { ...options, paths: setupPaths(options.settings) }
}

export function pause({ host, signal }: SetupContext, ms: number): Promise<void> {
  return sleep(host.clock, ms, signal)
}

export interface Wait {
  readonly what: string
  readonly everyMs: number
  readonly forMs: number
}

/** Polls until the condition is met or the time is up. */
export async function until(context: SetupContext, wait: Wait, ask: () => Promise<boolean>): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += wait.everyMs) {
    if (await ask()) return
    if (waitedMs >= wait.forMs) throw new CrashError(`${wait.what} within ${wait.forMs / 1000} s`)
    await pause(context, wait.everyMs)
  }
}

/** The adapter by name, or the virtual switch that replaced it. Throws CrashError. */
export async function management({ host, settings }: SetupContext): Promise<Management> {
  const { interfaceName } = settings
  const adapters = await host.network.adapters()
  const found = [`vEthernet (${interfaceName})`, interfaceName]
    .map((name) => adapters.find((adapter) => adapter.name === name))
    .find((adapter) => adapter !== undefined)
  if (found === undefined) {
    const names = adapters.map(({ name }) => `"${name}"`).join(', ')
    throw new CrashError(`No adapter is called "${interfaceName}"; the adapters are ${names}: set --interface-name`)
  }
  return { adapter: found.name, address: found.address, prefixLength: found.prefixLength }
}
