/** Objects as YAML and back, by the rules of YAML 1.1 that Kubernetes reads: `0644` is octal, times are text. */
import {
  Document,
  type DocumentOptions,
  isNode,
  isPair,
  isScalar,
  parseAllDocuments,
  type ParseOptions,
  Scalar,
  type SchemaOptions,
  visit,
} from 'yaml'

import type { KubeObject } from '#meta/object.ts'

import { type Step, stepsIn } from './field-path.ts'

const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  version: '1.1',
  merge: true,
  // Timestamps and base-60 numbers are text for Kubernetes.
  customTags: (tags) =>
    tags.filter(
      (tag) =>
        typeof tag === 'string' ||
        (tag.tag !== 'tag:yaml.org,2002:timestamp' && !('format' in tag && tag.format === 'TIME')),
    ),
}

/** Control characters are escaped, as kubectl does: the parser of Kubernetes refuses them. */
export function toYaml(value: unknown): string {
  const document = new Document(value, { ...OPTIONS, aliasDuplicateObjects: false })
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value === 'string' && CONTROL.test(node.value)) node.type = Scalar.QUOTE_DOUBLE
    },
  })
  return document.toString({ lineWidth: 0 })
}

const CONTROL = /[^\P{Cc}\n\t]/u

/** Everything that the API server has, managedFields last. */
export function readText({ metadata: { managedFields, ...metadata }, ...object }: KubeObject): string {
  const { apiVersion, kind, ...rest } = object
  return toYaml({
    apiVersion,
    kind,
    metadata: { ...metadata, ...(managedFields !== undefined && { managedFields }) },
    ...rest,
  })
}

const WRITTEN_BY_SERVER: ReadonlySet<string> = new Set([
  'managedFields',
  'resourceVersion',
  'generation',
  'uid',
  'creationTimestamp',
  'selfLink',
])

/** The parts that people edit: fields that the server writes are left out. */
export function editable(object: KubeObject): KubeObject {
  const metadata = Object.entries(object.metadata).filter(([name]) => !WRITTEN_BY_SERVER.has(name))
  const fields = Object.entries(object).filter(([name]) => name !== 'status' && name !== 'metadata')
  return inOrder({ ...Object.fromEntries(fields), metadata: Object.fromEntries(metadata) })
}

function inOrder({ apiVersion, kind, metadata, ...rest }: KubeObject): KubeObject {
  return { ...(apiVersion !== undefined && { apiVersion }), ...(kind !== undefined && { kind }), metadata, ...rest }
}

export interface Problem {
  readonly message: string
  readonly from: number
  readonly to: number
}

export interface ParsedDocument {
  /** Undefined if the text is not YAML or not a map. */
  readonly object: KubeObject | undefined
  readonly problems: readonly Problem[]
  /** The range of a field, or of its nearest parent that is in the text. */
  rangeOf(path: readonly Step[]): { readonly from: number; readonly to: number }
}

/** The documents of a text. Empty ones count for nothing. */
export function parseDocuments(text: string): readonly ParsedDocument[] {
  const documents = parseAllDocuments(text, OPTIONS)
  if ('empty' in documents) return []
  return documents.filter((one) => one.errors.length > 0 || !isEmpty(one)).map((one) => parsed(one))
}

function isEmpty({ contents }: Document.Parsed): boolean {
  return contents === null || (isScalar(contents) && contents.value === null)
}

function parsed(document: Document.Parsed): ParsedDocument {
  const problems = document.errors.map(({ message, pos: [from, to] }) => ({
    // The position is marked in the text.
    message: message.split(' at line ')[0] ?? message,
    from,
    to: Math.max(to, from + 1),
  }))
  const [start, end] = document.range
  const value: unknown = problems.length === 0 ? valueOf(document) : undefined
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (problems.length === 0 && !isMap) problems.push({ message: 'An object must be a map', from: start, to: end })
  return {
    object: isMap ? { ...value, metadata: metadataOf(value) } : undefined,
    problems,
    rangeOf: (path) => rangeOf(document, path, value),
  }
}

function valueOf(document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch {
    // Aliases that unfold without end.
    return undefined
  }
}

function metadataOf(value: object): KubeObject['metadata'] {
  const { metadata } = value as { metadata?: unknown }
  return typeof metadata === 'object' && metadata !== null ? metadata : {}
}

function rangeOf(document: Document.Parsed, path: readonly Step[], value: unknown): { from: number; to: number } {
  let found = { from: document.range[0], to: Math.min(document.range[1], document.range[0] + 1) }
  let node: unknown = document.contents
  for (const step of stepsIn(value, path)) {
    const { items = [] } = (node ?? {}) as { items?: readonly unknown[] }
    const item =
      typeof step === 'number'
        ? items[step]
        : items.find((one) => isPair(one) && isScalar(one.key) && one.key.value === step)
    const key = isPair(item) ? item.key : item
    node = isPair(item) ? item.value : item
    if (!isNode(key) || key.range == null) break
    const last = isScalar(node) && node.range != null ? node.range[1] : key.range[1]
    found = { from: key.range[0], to: Math.max(last, key.range[0] + 1) }
  }
  return found
}
