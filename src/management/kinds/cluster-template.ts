/** ClusterTemplate: a cluster file that built clusters follow, with the parts that may differ. It never changes. */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import { defineManagementKind, type ManagementKind, immutable, list, NAME, record, TEXT } from './definition.ts'

export interface ClusterTemplate extends KubeObject {
  readonly spec: ClusterTemplateSpec
}

export interface ClusterTemplateSpec {
  readonly displayName: string
  readonly description?: string
  /** A cluster file (docs/build.md) as an object, whole or in part, without keys and passwords. */
  readonly config: Readonly<Record<string, unknown>>
  /** Paths such as `nodes` or `services.kubelet.extra_args`. These and all below them may differ; everything else is locked. */
  readonly editable: readonly string[]
  /** The name of the User. */
  readonly createdBy?: string
}

export const CLUSTER_TEMPLATE: ManagementKind<ClusterTemplate> = defineManagementKind<ClusterTemplate>({
  kind: 'ClusterTemplate',
  plural: 'clustertemplates',
  description: 'A cluster file that built clusters follow, with the parts that may differ.',
  spec: record(
    {
      displayName: NAME,
      description: TEXT,
      config: immutable({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
      editable: immutable(list(NAME, 100)),
      createdBy: TEXT,
    },
    ['displayName', 'config', 'editable'],
  ),
  columns: [{ name: 'Display Name', jsonPath: '.spec.displayName' }],
})
export const ClusterTemplates: Kind<ClusterTemplate> = CLUSTER_TEMPLATE.kind
