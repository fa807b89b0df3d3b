/**
 * PodTolerationRestriction: adds tolerations of a namespace to its pods and restricts theirs to a whitelist. Off by
 * default. Upstream's plugin/pkg/admission/podtolerationrestriction, v1.36.
 */
import { type Namespace, Namespaces, type Pod, type Toleration } from '#apis/core/v1.ts'
import { structFor } from '#apis/schemas.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { parseJson } from '#lib/json/json.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import type { ListSchema } from '#meta/schema.ts'
import { failure, notFoundError } from '#meta/status-errors.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import { mergeTolerations, TolerationSet } from './kit/tolerations.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface PodTolerationOptions {
  readonly isEnabled: (gate: string) => boolean
  readonly podTolerations?: ClusterTolerations
}

/** The plugin's configuration, for namespaces without the annotation. */
export interface ClusterTolerations {
  readonly default?: readonly Toleration[]
  readonly whitelist?: readonly Toleration[]
}

/** Tolerations in annotations of namespaces. */
const TOLERATIONS: ListSchema = { type: 'list', items: structFor('core.v1', 'Toleration'), pointerItems: false }

const DEFAULT_ANNOTATION = 'scheduler.alpha.kubernetes.io/defaultTolerations'
const WHITELIST_ANNOTATION = 'scheduler.alpha.kubernetes.io/tolerationsWhitelist'

/** More than fit into the annotations of an object, which are limited to 256 KiB. */
const MAX_TOLERATIONS = 256 << 10

const MEMORY_PRESSURE: Toleration = {
  key: 'node.kubernetes.io/memory-pressure',
  operator: 'Exists',
  effect: 'NoSchedule',
}

export function createPodTolerationRestriction(options: PodTolerationOptions): AdmissionPlugin {
  const { isEnabled, podTolerations = {} } = options
  return defineAdmission({
    name: 'PodTolerationRestriction',
    on: ['CREATE', 'UPDATE'],
    resources: ['pods'],

    async mutate(attributes) {
      const pod = attributes.object as Pod
      const { spec } = pod
      const isNew = attributes.operation === 'CREATE'
      const defaults = isNew ? await namespaceTolerations(attributes, DEFAULT_ANNOTATION) : []
      const added = [...(defaults ?? podTolerations.default ?? [])]
      const isBestEffort = qosClassOf(pod, isEnabled('PodLevelResources')) === 'BestEffort'
      if (!isBestEffort) added.push(MEMORY_PRESSURE)
      if (added.length > 0) spec.tolerations = mergeTolerations(spec.tolerations ?? [], added)
      await checkWhitelist(attributes, podTolerations.whitelist)
    },
    validate: (attributes) => checkWhitelist(attributes, podTolerations.whitelist),
  })
}

async function checkWhitelist(attributes: Attributes, clusterWhitelist: readonly Toleration[] = []): Promise<void> {
  const { tolerations = [] } = (attributes.object as Pod).spec
  if (tolerations.length === 0) return
  const own = await namespaceTolerations(attributes, WHITELIST_ANNOTATION)
  const [whitelist, scope] = own === undefined ? [clusterWhitelist, 'cluster'] : [own, 'namespace']
  if (whitelist.length === 0) return
  const allowed = new TolerationSet(whitelist)
  if (tolerations.every((toleration) => allowed.includes(toleration))) return
  const subject = 'pod tolerations (possibly merged with namespace default tolerations)'
  // Upstream answers 500 with the bare text.
  throw failure({ code: 500, message: `${subject} conflict with its ${scope} whitelist` })
}

/** Undefined without the annotation; an empty annotation is an empty list. */
async function namespaceTolerations(
  { objects, namespace }: Attributes,
  annotation: string,
): Promise<readonly Toleration[] | undefined> {
  const found: Namespace | undefined = await objects.get(Namespaces, '', namespace)
  if (found === undefined) throw notFoundError({ group: '', resource: 'namespaces' }, namespace)
  const annotated = found.metadata.annotations?.[annotation]
  if (annotated === undefined || annotated === '') return annotated === undefined ? undefined : []
  try {
    const sink = { duplicates: [], offences: [], maxStructs: MAX_TOLERATIONS }
    return (decodeValue(TOLERATIONS, parseJson(annotated), 'Ignore', sink) as Toleration[] | undefined) ?? []
  } catch (cause) {
    throw failure({ code: 500, message: (cause as Error).message })
  }
}
