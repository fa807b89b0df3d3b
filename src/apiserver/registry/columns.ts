/** Table columns that most kinds share, such as Name and Age. */
import { ageText } from '#meta/duration.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Column } from './resource.ts'

export const nameColumn: Column<KubeObject> = {
  name: 'Name',
  format: 'name',
  value: ({ metadata }) => metadata.name ?? '',
}

export const ageColumn: Column<KubeObject> = {
  name: 'Age',
  value: ({ metadata }, nowMs) => ageText(metadata.creationTimestamp, nowMs),
}
