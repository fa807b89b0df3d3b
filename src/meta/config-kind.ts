/** Decodes configuration files whose documents are API objects, with the same decoder and errors as stored objects. */
import { CodecError } from './codec/error.ts'
import { decodeObject } from './codec/object.ts'
import { type Complete, type ConfigOption, fillDefaults, optionsOf, schemaOf, type StructTable } from './config-rows.ts'
import { apiVersionOf, type GroupVersionKind, parseApiVersion } from './kind.ts'
import type { StructSchema } from './schema.ts'

export interface ConfigKind {
  readonly kind: string
  /** All versions have the same shape. */
  readonly apiVersions: readonly string[]
  readonly schema: StructSchema
}

/** A configuration kind with what follows from its rows. */
export interface ConfigTable<T> extends ConfigKind {
  /** In the order of the table. */
  readonly options: readonly ConfigOption[]
  withDefaults(given: object): T
}

/** `root` is the struct of the kind; `external` has the schemas of structs that are not in the table. */
export function defineConfig<const S extends StructTable, const N extends keyof S & string>(
  [kind, root]: readonly [kind: string, root: N],
  apiVersions: readonly string[],
  structs: S,
  external: Readonly<Record<string, StructSchema>> = {},
): ConfigTable<Complete<S, N>> {
  const table = { ...structs, [root]: { kind: 'string', apiVersion: 'string', ...structs[root] } }
  return {
    kind,
    apiVersions,
    schema: schemaOf(table, root, external),
    options: optionsOf(structs, root),
    withDefaults: (given) => fillDefaults(structs, root, given),
  }
}

export interface ReadOptions {
  /** The default kind of a file. */
  readonly defaultKind?: GroupVersionKind
  /** The error for a file with another configuration kind of the server. */
  readonly mistaken?: (kind: string) => string
  /** Receives unknown fields, which are then accepted. */
  readonly warn?: (message: string) => void
}

export interface ReadConfig {
  readonly gvk: GroupVersionKind
  readonly value: Readonly<Record<string, unknown>>
}

/** Throws upstream's text for an unreadable file. */
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

/** The configuration kinds of the server. */
const SIBLINGS = ['Admission', 'Authentication', 'Authorization', 'Encryption', 'Tracing'].map(
  (name) => `${name}Configuration`,
)

function configText({ message, code, gvk }: CodecError, mistaken: ReadOptions['mistaken']): string {
  if (code !== 'unknown-kind') return message
  const isSibling =
    gvk !== undefined && SIBLINGS.includes(gvk.kind) && apiVersionOf(gvk) === 'apiserver.config.k8s.io/v1'
  if (isSibling && mistaken !== undefined) return mistaken(gvk.kind)
  // Upstream's name of a type table other than the server's.
  return message.replace(/in scheme ".*"$/, 'in scheme "pkg/runtime/scheme.go:111"')
}

/** Go's text for an unreadable file. */
export function fileErrorText(file: string, { code, message }: NodeJS.ErrnoException): string {
  const known = new Map([
    ['ENOENT', `open ${file}: no such file or directory`],
    ['EACCES', `open ${file}: permission denied`],
    ['EISDIR', `read ${file}: is a directory`],
  ])
  return known.get(code ?? '') ?? message
}
