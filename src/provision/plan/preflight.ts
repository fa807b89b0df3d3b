/** Checks whether a machine meets the requirements, before anything changes. Pure. */
import type { DesiredHost, Preflight } from '../desired.ts'
import type { MachineFacts } from '../machine.ts'

export interface Findings {
  readonly faults: readonly string[]
  readonly notes: readonly string[]
}

export function preflight(host: DesiredHost, facts: MachineFacts, observedAt: number, needs: Preflight): Findings {
  const missing = needs.programs.filter((name) => !facts.programs.includes(name))
  const skew = Math.abs(facts.now - observedAt)
  const faults = [
    ...missing.map((name) => `the program ${name} is missing`),
    ...(facts.freeBytes < needs.freeBytes
      ? [`${gigabytes(facts.freeBytes)} are free below /var/lib, and ${gigabytes(needs.freeBytes)} are needed`]
      : []),
    ...(skew > needs.skewMs ? [`its clock differs from ours by ${Math.round(skew / 1000)} s`] : []),
    ...(facts.swapBytes > 0 && !needs.allowsSwap
      ? ['swap is on: turn it off, or set services.kubelet.fail_swap_on to false']
      : []),
    ...(facts.architecture === 'x64' || facts.architecture === 'arm64'
      ? []
      : [`its processor (${facts.architecture}) is not supported`]),
  ]
  const notes = [
    ...(facts.memoryBytes < needs.memoryBytes
      ? [`it has ${gigabytes(facts.memoryBytes)} of memory; ${gigabytes(needs.memoryBytes)} are advised`]
      : []),
    ...(facts.cgroupVersion === 1 ? ['it has cgroup v1, which Kubernetes is about to leave behind'] : []),
    ...(facts.hasSystemd ? [] : ['it has no systemd: services stop with the machine, and "up" starts them again']),
  ]
  const named = (texts: readonly string[]): string[] => texts.map((text) => `${host.name}: ${text}`)
  return { faults: named(faults), notes: named(notes) }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`
}
