/** Tests that every field of every served kind has a description, and that shared ones reach only types they fit. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { groups } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'

import { Definitions, V2 } from './definitions.ts'
import { describeDefinition, SHARED, TABLES, textOf } from './descriptions.ts'

const kinds = groups.flatMap(({ versions }) => versions.flatMap((version) => version.kinds))
const parts = kinds.flatMap(({ subresources }) => subresources.map(({ kind }) => kind))
const ANSWERS = 'APIGroup APIGroupList APIResourceList APIVersions DeleteOptions Status WatchEvent'.split(' ')

interface Text {
  readonly name: string
  /** `''` is the type itself. */
  readonly field: string
}

/** Every type of the documents and its fields. */
const texts: readonly Text[] = [...definitions()].flatMap(([name, { properties = {} }]) =>
  ['', ...Object.keys(properties as object)].map((field) => ({ name, field })),
)

function definitions(): Definitions['found'] {
  const collected = new Definitions(V2, describeDefinition, () => [])
  const answers = ANSWERS.map((kind) => ({ group: '', version: 'v1', kind }))
  const lists = kinds.map((kind) => ({ ...kind, kind: kind.listKind }))
  for (const kind of [...kinds, ...lists, ...parts, ...answers]) {
    const schema = schemaFor(kind)
    if (schema !== undefined) collected.ref(schema)
  }
  return collected.found
}

const objects = [...kinds, ...parts].map(({ kind }) => kind).filter((kind) => !kind.endsWith('Options'))

/** The types that each section of shared.json is meant for, or each field of it. */
const MEANT_FOR: Readonly<Record<string, readonly string[]>> = {
  list: [...kinds.map(({ listKind }) => listKind), 'APIGroupList', 'APIResourceList'],
  condition: words(`
    APIServiceCondition CertificateSigningRequestCondition CustomResourceDefinitionCondition DaemonSetCondition
    DeploymentCondition FlowSchemaCondition HorizontalPodAutoscalerCondition JobCondition NamespaceCondition
    NodeCondition PersistentVolumeClaimCondition PodCondition PriorityLevelConfigurationCondition ReplicaSetCondition
    ReplicationControllerCondition StatefulSetCondition StorageVersionCondition`),
  options: words(`
    DeleteOptions NodeProxyOptions PodAttachOptions PodExecOptions PodPortForwardOptions PodProxyOptions
    ServiceProxyOptions`),
  type: words(`
    FieldsV1 IntOrString JSON JSONSchemaPropsOrArray JSONSchemaPropsOrBool JSONSchemaPropsOrStringArray MicroTime
    Quantity RawExtension Time`),
  'any.apiVersion': [...objects, 'APIGroup', 'APIVersions', 'Status'],
  'any.kind': [...objects, 'APIGroup', 'APIVersions', 'Status'],
  'any.metadata': objects,
  'any.spec': words(`
    APIService CronJob CustomResourceDefinition DaemonSet Deployment DeviceTaintRule FlowSchema HorizontalPodAutoscaler
    Ingress Job LimitRange MutatingAdmissionPolicy MutatingAdmissionPolicyBinding Namespace NetworkPolicy Node
    PersistentVolume PersistentVolumeClaim Pod PodDisruptionBudget PodGroup PriorityLevelConfiguration ReplicaSet
    ReplicationController ResourceQuota Scale Service ServiceCIDR StatefulSet StorageVersionMigration
    ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding Workload`),
  'any.status': words(`
    APIService CronJob CustomResourceDefinition DaemonSet Deployment DeviceTaintRule FlowSchema HorizontalPodAutoscaler
    Ingress Job Namespace Node PersistentVolume PersistentVolumeClaim Pod PodDisruptionBudget PodGroup
    PriorityLevelConfiguration ReplicaSet ReplicationController ResourceQuota Scale Service ServiceCIDR StatefulSet
    StorageVersionMigration ValidatingAdmissionPolicy`),
  'any.conditions': words(`
    CustomResourceDefinitionStatus DaemonSetStatus DeploymentStatus HorizontalPodAutoscalerStatus JobStatus
    NamespaceStatus NodeStatus PersistentVolumeClaimStatus PodDisruptionBudgetStatus PodStatus
    PriorityLevelConfigurationStatus ReplicaSetStatus ReplicationControllerStatus ServiceStatus StatefulSetStatus
    ValidatingAdmissionPolicyStatus`),
  'any.observedGeneration': words(`
    CustomResourceDefinitionStatus DaemonSetStatus DeploymentStatus HorizontalPodAutoscalerStatus
    PodDisruptionBudgetStatus ReplicaSetStatus ReplicationControllerStatus StatefulSetStatus
    ValidatingAdmissionPolicyStatus`),
}

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}

/** The entry of `MEANT_FOR` and the type; undefined for a type or field with its own description. */
function sharedUse({ name, field }: Text): readonly [entry: string, type: string] | undefined {
  const [, home = '', type = ''] = /^(.*)\.[^.]+\.([^.]+)$/.exec(name) ?? []
  if (textOf(TABLES.get(home) ?? {}, type, field) !== undefined) return undefined
  const text = describeDefinition(name, field)
  if (field === '' && SHARED['type']?.[type] === text) return ['type', type]
  const section = Object.keys(SHARED).find((one) => SHARED[one]?.[field] === text) ?? 'list'
  return [Object.hasOwn(MEANT_FOR, section) ? section : `${section}.${field}`, type]
}

describe('OpenAPI descriptions of served kinds', () => {
  it('exist for every type and every field', () => {
    assert.ok(texts.length > 3500)
    assert.deepEqual(
      texts.filter(({ name, field }) => describeDefinition(name, field) === ''),
      [],
    )
  })

  const uses = texts.flatMap((text) => [sharedUse(text)].filter((use) => use !== undefined))

  it('are shared only by types for which the shared text is meant', () => {
    const wrong = uses.filter(([entry, type]) => !(MEANT_FOR[entry] ?? []).includes(type))
    assert.deepEqual(
      wrong.map(([entry, type]) => `${type}: ${entry}`),
      [],
    )
  })

  for (const entry of Object.keys(MEANT_FOR).filter((one) => !/^list$|\.(?:apiVersion|kind|metadata)$/.test(one))) {
    it(`use the shared text ${entry} for every listed type`, () => {
      const types = uses.filter(([used]) => used === entry).map(([, type]) => type)
      assert.deepEqual([...new Set(types)].sort(), MEANT_FOR[entry])
    })
  }
})
