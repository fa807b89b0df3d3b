/** Which containers of a pod run, and why one of them does not yet. */
import type { ContainerStatus, Pod } from '#apis/core/v1.ts'

function statusesOf({ status }: Pod): readonly ContainerStatus[] {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {}
  return [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses]
}

export function runningContainers(pod: Pod): readonly string[] {
  return statusesOf(pod)
    .filter(({ state }) => state?.running !== undefined)
    .map(({ name }) => name)
}

export interface ContainerStart {
  readonly title: string
  readonly text: string
}

/** Of a container that does not run. */
export function containerStart(pod: Pod, container: string): ContainerStart {
  const { containers, ephemeralContainers = [] } = pod.spec
  if (![...containers, ...ephemeralContainers].some(({ name }) => name === container)) {
    return {
      title: `The pod has no container ${container}`,
      text: 'A container that was just added appears here at once.',
    }
  }
  const { waiting, terminated } = statusesOf(pod).find(({ name }) => name === container)?.state ?? {}
  if (terminated !== undefined) {
    return {
      title: `Container ${container} has ended`,
      text: `Exit code ${terminated.exitCode} ${terminated.message ?? ''}`,
    }
  }
  const why = [waiting?.reason, waiting?.message].filter(Boolean).join(': ')
  return { title: `Container ${container} is starting`, text: why === '' ? 'Its shell opens as soon as it runs.' : why }
}
