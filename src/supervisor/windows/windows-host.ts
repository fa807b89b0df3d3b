/** What a Windows machine has beside what the supervisor needs: services, a firewall, and who may change them. */
import type { HnsCall } from '#lib/hns/hns.ts'

import type { Host } from '../host.ts'

export interface WindowsHost extends Host {
  readonly services: HostServices
  readonly firewall: HostFirewall
  readonly hns: HnsCall
  /** In lower case. */
  readonly machineName: string
  /** Whether this process may do what only administrators may. */
  isElevated(): Promise<boolean>
}

export interface ServicePlan {
  readonly name: string
  readonly description: string
  /** The little program, made for this service, that Windows runs and that runs `program`. */
  readonly wrapper: string
  readonly program: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** What the program says goes to the end of it. */
  readonly logFile: string
}

export type ServiceState = 'running' | 'stopped'

export interface HostServices {
  /** undefined: there is no such service. */
  state(name: string): Promise<ServiceState | undefined>
  /** One that starts with the machine, and again when its program has ended. Not started yet. Takes the place of another. */
  install(plan: ServicePlan): Promise<void>
  start(name: string): Promise<void>
  /** Waits for the end. */
  stop(name: string): Promise<void>
  /** Stopped before; there may be none. */
  remove(name: string): Promise<void>
}

export interface FirewallRule {
  readonly name: string
  readonly protocol: 'TCP' | 'UDP'
  readonly port: number
}

/** Of what comes in. */
export interface HostFirewall {
  isAllowed(name: string): Promise<boolean>
  allow(rule: FirewallRule): Promise<void>
  /** There may be none. */
  remove(name: string): Promise<void>
}
