/** What steps of a set-up share: the machine, the cluster it joins, and waiting. */
import { sleep } from '#lib/clock.ts'

import { CrashError } from '../../outcome.ts'
import type { WindowsHost } from '../windows-host.ts'
import type { ClusterEndpoint, Management } from './documents.ts'
import { placesIn, type SetupPlaces, type SetupSettings } from './settings.ts'

/** Programs beside kubelet that reach the API server. */
export type Component = 'kube-proxy' | 'flannel'

/** What is asked of the cluster that the machine joins. */
export interface ClusterView {
  /** Of the Service in kube-system whose name has `dns` in it. Rejects when there is none. */
  dnsServiceIp(): Promise<string>
  isNodeThere(name: string): Promise<boolean>
  /** There may be none. */
  deleteNode(name: string): Promise<void>
  endpoint(): Promise<ClusterEndpoint>
  /** PEM of the authority whose certificates the API server accepts, and shows kubelets one of. Rejects without any. */
  clientAuthority(): Promise<string>
  /** A token with which a kubelet may request the certificate of a node. */
  joinToken(): Promise<string>
  /** A token with the rights of the component, for this node's use alone; the same one when it is asked for again. */
  componentToken(component: Component, node: string): Promise<string>
  /** The token is not accepted any more. */
  revoke(component: Component, node: string): Promise<void>
}

export interface SetupContext {
  readonly host: WindowsHost
  readonly cluster: ClusterView
  readonly settings: SetupSettings
  readonly places: SetupPlaces
  readonly signal: AbortSignal
}

export function setupContext(options: Omit<SetupContext, 'places'>): SetupContext {
  return { ...options, places: placesIn(options.settings) }
}

export function pause({ host, signal }: SetupContext, ms: number): Promise<void> {
  return sleep(host.clock, ms, signal)
}

export interface Wait {
  readonly what: string
  readonly everyMs: number
  readonly forMs: number
}

/** Asks, and again after each pause, until it is so or the time is up. */
export async function until(context: SetupContext, wait: Wait, ask: () => Promise<boolean>): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += wait.everyMs) {
    if (await ask()) return
    if (waitedMs >= wait.forMs) throw new CrashError(`${wait.what} within ${wait.forMs / 1000} s`)
    await pause(context, wait.everyMs)
  }
}

/** The adapter by its own name, or that of the switch which took its place. Throws CrashError. */
export async function management({ host, settings }: SetupContext): Promise<Management> {
  const { interfaceName } = settings
  const adapters = await host.network.adapters()
  const found = [`vEthernet (${interfaceName})`, interfaceName]
    .map((name) => adapters.find((adapter) => adapter.name === name))
    .find((adapter) => adapter !== undefined)
  if (found === undefined) {
    const names = adapters.map(({ name }) => `"${name}"`).join(', ')
    throw new CrashError(`No adapter is called "${interfaceName}"; there are ${names}: name one by --interface-name`)
  }
  return { adapter: found.name, address: found.address, prefixLength: found.prefixLength }
}
