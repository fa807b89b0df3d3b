/** The interface to Windows machines in addition to the host's: services, firewall and permissions. */
import type { HnsCall } from '#lib/hns/hns.ts'

import type { Host } from '../host.ts'

export interface WindowsHost extends Host {
  readonly services: HostServices
  readonly firewall: HostFirewall
  readonly hns: HnsCall
  /** In lower case. */
  readonly machineName: string
  /** True if the process has administrator rights. */
  isElevated(): Promise<boolean>
}

export interface ServicePlan {
  readonly name: string
  readonly description: string
  /** The wrapper executable that Windows runs and that runs `program`. */
  readonly wrapper: string
  readonly program: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** The log file, to which output is appended. */
  readonly logFile: string
}

export type ServiceState = 'running' | 'stopped'

export interface HostServices {
  /** Undefined if the service does not exist. */
  state(name: string): Promise<ServiceState | undefined>
  /**
   * Creates or replaces a service that starts with the machine and restarts after its program has ended. Does not start
   * it.
   */
  install(plan: ServicePlan): Promise<void>
  start(name: string): Promise<void>
  /** Waits until it has stopped. */
  stop(name: string): Promise<void>
  /** Must be stopped before; it may not exist. */
  remove(name: string): Promise<void>
}

export interface FirewallRule {
  readonly name: string
  readonly protocol: 'TCP' | 'UDP'
  readonly port: number
}

/** For inbound traffic. */
export interface HostFirewall {
  isAllowed(name: string): Promise<boolean>
  allow(rule: FirewallRule): Promise<void>
  /** It may not exist. */
  remove(name: string): Promise<void>
}
