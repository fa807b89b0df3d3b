/**
 * Configuration files that are API objects nobody stores: their shapes as schemas, written down by hand, so that they
 * are read by the same decoder as everything else and refused in the same words.
 */
import { CodecError } from './codec/error.ts'
import { decodeObject } from './codec/object.ts'
import { apiVersionOf, type GroupVersionKind, parseApiVersion } from './kind.ts'
import type { AnySchema, FieldSchema, ListSchema, ScalarSchema, ScalarType, Schema, StructSchema } from './schema.ts'

export interface ConfigKind {
  readonly kind: string
  /** All of the same shape. */
  readonly apiVersions: readonly string[]
  readonly schema: StructSchema
}

/** `goType` where error texts show another name than the type's own. */
export function scalar(type: ScalarType, goType: string = type): ScalarSchema {
  return { type, goType }
}

export const text: ScalarSchema = scalar('string')
export const flag: ScalarSchema = scalar('boolean', 'bool')
export const texts: ListSchema = listOf(text)

export function listOf(items: Schema): ListSchema {
  return { type: 'list', items, pointerItems: false }
}

/** Any value, for others to make sense of. */
export const anything: AnySchema = { type: 'any', goType: 'runtime.Unknown' }

/** A field of which zero and absent differ. */
export interface Optional {
  readonly optional: Schema
}

export function optional(schema: Schema): Optional {
  return { optional: schema }
}

export function struct(goType: string, fields: Readonly<Record<string, Schema | Optional>>): StructSchema {
  const entries = Object.entries(fields).map(([name, given]): [string, FieldSchema] => {
    const isOptional = 'optional' in given
    const schema = isOptional ? given.optional : given
    return [name, { name, schema, required: false, pointer: isOptional, omitEmpty: true }]
  })
  return { type: 'struct', goType, fields: new Map(entries), mapType: 'granular', preserveUnknown: false }
}

export function defineConfig(
  kind: string,
  apiVersions: readonly string[],
  goType: string,
  fields: Readonly<Record<string, Schema | Optional>>,
): ConfigKind {
  return { kind, apiVersions, schema: struct(goType, { kind: text, apiVersion: text, ...fields }) }
}

export interface ReadOptions {
  /** What a file is that does not say so. */
  readonly defaultKind?: GroupVersionKind
  /** What to say of a file that is another of the server's configurations: it has been mixed up. */
  readonly mistaken?: (kind: string) => string
  /** Told of fields that do not belong, instead of being refused them. */
  readonly warn?: (message: string) => void
}

export interface ReadConfig {
  readonly gvk: GroupVersionKind
  readonly value: Readonly<Record<string, unknown>>
}

/** Throws upstream's text for what cannot be read. */
export function readConfig(source: string, kinds: readonly ConfigKind[], options: ReadOptions = {}): ReadConfig {
  const known = kinds.flatMap(({ kind, apiVersions, schema }) =>
    apiVersions.map((version) => ({ gvk: { ...parseApiVersion(version), kind }, schema })),
  )
  const schemaFor = (wanted: GroupVersionKind): StructSchema | undefined =>
    known.find(({ gvk }) => gvk.kind === wanted.kind && apiVersionOf(gvk) === apiVersionOf(wanted))?.schema
  const { defaultKind, mistaken, warn } = options
  const decode = (validation: 'Strict' | 'Ignore'): ReadConfig => {
    const { gvk, object } = decodeObject(source, 'application/yaml', {
      schemaFor,
      validation,
      ...(defaultKind !== undefined && { defaultKind }),
    })
    return { gvk, value: object }
  }
  try {
    return decode('Strict')
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause
    if (cause.code !== 'strict' || warn === undefined) throw new Error(configText(cause, mistaken), { cause })
    warn(cause.message)
    return decode('Ignore')
  }
}

/** The configurations of the server itself. */
const SIBLINGS = ['Admission', 'Authentication', 'Authorization', 'Encryption', 'Tracing'].map(
  (name) => `${name}Configuration`,
)

function configText({ message, code, gvk }: CodecError, mistaken: ReadOptions['mistaken']): string {
  if (code !== 'unknown-kind') return message
  const isSibling =
    gvk !== undefined && SIBLINGS.includes(gvk.kind) && apiVersionOf(gvk) === 'apiserver.config.k8s.io/v1'
  if (isSibling && mistaken !== undefined) return mistaken(gvk.kind)
  // Upstream's name for a table of types that is not the server's.
  return message.replace(/in scheme ".*"$/, 'in scheme "pkg/runtime/scheme.go:111"')
}

/** Why a file cannot be read, as Go says it. */
export function fileErrorText(file: string, { code, message }: NodeJS.ErrnoException): string {
  const known = new Map([
    ['ENOENT', `open ${file}: no such file or directory`],
    ['EACCES', `open ${file}: permission denied`],
    ['EISDIR', `read ${file}: is a directory`],
  ])
  return known.get(code ?? '') ?? message
}
