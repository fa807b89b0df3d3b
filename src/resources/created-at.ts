/** The table column `Created At`, for kinds without more specific columns. */
import type { Column } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'

export const createdAtColumn: Column<KubeObject> = {
  name: 'Created At',
  type: 'date',
  value: ({ metadata }) => metadata.creationTimestamp ?? null,
}
