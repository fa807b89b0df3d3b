/**
 * The columns of a Table of custom resources: the name, then those that the CustomResourceDefinition declares by JSON
 * path.
 */
import type { CustomResourceColumnDefinition } from '#apis/apiextensions/v1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import type { Column } from '#apiserver/registry/resource.ts'
import { stringifyJson } from '#lib/json/json.ts'
import type { JsonValue } from '#lib/json/value.ts'
import { ageText } from '#meta/duration.ts'
import type { KubeObject } from '#meta/object.ts'
import type { TableCell, TableColumn } from '#meta/table.ts'
import { canonicalTime } from '#meta/time.ts'

import { compilePath, type Path } from './json-path.ts'

const NAME: Column<KubeObject> = {
  ...nameColumn,
  description:
    'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names',
}

/** The default columns. */
const AGE: CustomResourceColumnDefinition = {
  name: 'Age',
  type: 'date',
  description:
    'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata',
  jsonPath: '.metadata.creationTimestamp',
}

/** As upstream, an invalid path drops its column and all later ones. */
export function columnsOf(declared: readonly CustomResourceColumnDefinition[] | undefined): Column<KubeObject>[] {
  const columns = [NAME]
  for (const one of declared === undefined || declared.length === 0 ? [AGE] : declared) {
    const column = columnOf(one)
    if (column === undefined) break
    columns.push(column)
  }
  return columns
}

function columnOf(declared: CustomResourceColumnDefinition): Column<KubeObject> | undefined {
  const { name, type, format = '', description = '', priority = 0, jsonPath } = declared
  const path = compilePath(jsonPath)
  if (path === undefined) return undefined
  return {
    name,
    type: type as TableColumn['type'],
    format,
    priority,
    description:
      description === '' ? `Custom resource definition column (in JSONPath format): ${jsonPath}` : description,
    value: (object, nowMs) => cellOf(path, type, object, nowMs),
  }
}

function cellOf(path: Path, type: string, object: KubeObject, nowMs: number): TableCell {
  const [value] = path(object as unknown as JsonValue)
  if (value === undefined || value === null) return null
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : typeof value === 'bigint' ? Number(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return typeof value === 'string' ? dateText(value, nowMs) : null
    default:
      return typeof value === 'object' ? stringifyJson(value) : String(value)
  }
}

function dateText(text: string, nowMs: number): string {
  try {
    return ageText(canonicalTime(text) ?? text, nowMs)
  } catch {
    return '<invalid>'
  }
}
