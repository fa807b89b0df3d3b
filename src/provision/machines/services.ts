/** What keeps the services of a machine: systemd where that runs, else a keeper of our own. */
import type { ServiceSpec, ServiceState } from '../machine.ts'

export interface Services {
  look(name: string): Promise<ServiceState | undefined>
  /** Stops the one of this name first: what is written down is never newer than what runs. */
  serve(service: ServiceSpec): Promise<void>
  /** Harmless where there is none. */
  retire(name: string): Promise<void>
  tail(name: string, lines: number): Promise<string>
  /** Retires all that were ever served, and what keeps them if that is ours. */
  leave(): Promise<void>
}

/** What services are called by systemd, and their logs by the keeper: ours among those of others. */
export function unitName(name: string): string {
  return `hyperkube-${name}`
}
