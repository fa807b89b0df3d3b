/** What kinds without columns of their own show besides their name. */
import type { Column } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'

export const createdAtColumn: Column<KubeObject> = {
  name: 'Created At',
  type: 'date',
  value: ({ metadata }) => metadata.creationTimestamp ?? null,
}
