/** Selects containers of a pod by name. Pure. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'

import { KubectlError } from '../errors.ts'

/** The annotation with the default container. */
export const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

/** The lists of containers in a pod spec. */
export type ContainerField = 'containers' | 'initContainers' | 'ephemeralContainers'

export interface FoundContainer {
  readonly container: Container | EphemeralContainer
  readonly field: ContainerField
}

const FIELDS: readonly ContainerField[] = ['containers', 'initContainers', 'ephemeralContainers']

export function findContainer({ spec }: Pod, name: string): FoundContainer | undefined {
  for (const field of FIELDS) {
    const container = (spec[field] ?? []).find((one) => one.name === name)
    if (container !== undefined) return { container, field }
  }
  return undefined
}

/** `web, shell (ephem), prepare (init)`. */
export function allContainerNames({ spec }: Pod): string {
  return [
    ...spec.containers.map(({ name }) => name),
    ...(spec.ephemeralContainers ?? []).map(({ name }) => `${name} (ephem)`),
    ...(spec.initContainers ?? []).map(({ name }) => `${name} (init)`),
  ].join(', ')
}

export function isChoice({ spec }: Pod): boolean {
  return spec.containers.length > 1 || Boolean(spec.initContainers?.length) || Boolean(spec.ephemeralContainers?.length)
}

export function noSuchContainer(pod: Pod, name: string): KubectlError {
  return new KubectlError(
    `container ${name} is not valid for pod ${pod.metadata.name ?? ''} out of: ${allContainerNames(pod)}`,
  )
}

/** The named container, the pod's default or the first, which is reported to `warn`. Throws KubectlError. */
export function chosenContainer(pod: Pod, name: string, warn: (line: string) => void): FoundContainer {
  const { namespace = '', name: podName = '', annotations = {} } = pod.metadata
  const [first] = pod.spec.containers
  if (first === undefined) throw new KubectlError(`pod ${namespace}/${podName} does not have any containers`)
  const wanted = name || annotations[DEFAULT_CONTAINER] || ''
  if (wanted !== '') {
    const found = findContainer(pod, wanted)
    if (found === undefined) throw noSuchContainer(pod, wanted)
    return found
  }
  if (isChoice(pod)) warn(defaultedText(pod, first.name))
  return { container: first, field: 'containers' }
}

export function defaultedText(pod: Pod, name: string): string {
  return `Defaulted container "${name}" out of: ${allContainerNames(pod)}\n`
}
