/** Selects the service manager of a machine: systemd if it runs, else our keeper. */
import type { ServiceSpec, ServiceState } from '../machine.ts'

export interface Services {
  look(name: string): Promise<ServiceState | undefined>
  /** Stops the service first, so that the recorded definition is never newer than the running one. */
  serve(service: ServiceSpec): Promise<void>
  /** Has no effect if it does not exist. */
  retire(name: string): Promise<void>
  tail(name: string, lines: number): Promise<string>
  /** Removes all services ever installed, and our keeper. */
  leave(): Promise<void>
}

/** The name prefix of systemd units and log files. */
export function unitName(name: string): string {
  return `hyperkube-${name}`
}
