/** The inputs that all parts of the kube-proxy program share. */
import type { FlagGroups } from '#lib/flags/flags.ts'
import type { Invocation } from '#lib/program.ts'
import type { ProxyConfiguration } from '#proxy/configuration.ts'

import type { ProxySettings } from './flags.ts'

export const PROXY_MODES = ['nftables', 'iptables'] as const
export type ProxyMode = (typeof PROXY_MODES)[number]

export interface ProxyProgram extends Invocation<FlagGroups> {
  readonly settings: ProxySettings
  readonly configuration: ProxyConfiguration
  readonly mode: ProxyMode
  readonly closing: AsyncDisposableStack
  readonly signal: AbortSignal
}
