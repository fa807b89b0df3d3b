/** Writes the types of a package as TypeScript: one interface per struct, one constant per served resource. */
import { NULLABLE } from './corrections.ts'
import type { Package } from './packages.ts'
import type { Field, Struct } from './structs.ts'
import type { TypeRef } from './type-refs.ts'

/** Types of meta that are written by hand: name → module. */
const BY_HAND: Readonly<Record<string, string>> = {
  FieldsV1: '#meta/object.ts',
  KubeList: '#meta/object.ts',
  KubeObject: '#meta/object.ts',
  LabelSelector: '#meta/label-selector.ts',
  LabelSelectorRequirement: '#meta/label-selector.ts',
  ListMeta: '#meta/object.ts',
  ManagedFieldsEntry: '#meta/object.ts',
  ObjectMeta: '#meta/object.ts',
  OwnerReference: '#meta/object.ts',
  Status: '#meta/status.ts',
  StatusCause: '#meta/status.ts',
  StatusDetails: '#meta/status.ts',
  TypeMeta: '#meta/object.ts',
}

/** A resource that gets a constant. */
export interface ResourceName {
  readonly plural: string
  readonly kind: string
}

/** The imports a file turns out to need: module → names. */
type Imports = Map<string, Set<string>>

interface Writer {
  readonly key: string
  readonly imports: Imports
  readonly packages: ReadonlyMap<string, Package>
}

export function renderTypes(
  { key, group, version, structs }: Package,
  resources: readonly ResourceName[],
  packages: ReadonlyMap<string, Package>,
): string {
  const writer: Writer = { key, imports: new Map(), packages }
  const mine = [...structs.values()].filter(({ name }) => key !== 'meta/v1' || BY_HAND[name] === undefined)
  const types = mine
    .filter(({ name }) => !name.startsWith('JSONSchemaPropsOr'))
    .map((item) => renderStruct(writer, item))
  const apiVersion = group === '' ? version : `${group}/${version}`
  const constants = resources.map(
    ({ plural, kind }) =>
      `export const ${pluralName(kind, plural)}: Kind<${kind}> = kind('${apiVersion}', '${plural}')\n`,
  )
  const kinds = constants.length > 0 ? `import { kind, type Kind } from '../kinds.ts'\n` : ''
  return `${renderImports(writer.imports)}${kinds}\n${types.join('\n')}${constants.length > 0 ? '\n' : ''}${constants.join('')}`
}

/** `NetworkPolicy`, `networkpolicies` → `NetworkPolicies`. */
export function pluralName(kind: string, plural: string): string {
  let shared = 0
  while (shared < kind.length && kind[shared]?.toLowerCase() === plural[shared]) shared++
  return kind.slice(0, shared) + plural.slice(shared)
}

function renderImports(imports: Imports): string {
  const modules = [...imports].sort(([a], [b]) => (a < b ? -1 : 1))
  return modules.map(([module, names]) => `import type { ${[...names].sort().join(', ')} } from '${module}'\n`).join('')
}

function renderStruct(writer: Writer, struct: Struct): string {
  const fields = membersOf(writer, struct)
  const item = listItem(struct, fields)
  if (item !== undefined) {
    use(writer, '#meta/object.ts', 'KubeList')
    return `export type ${struct.name} = KubeList<${typeText(writer, item)}>\n`
  }
  const isObject =
    struct.typeMeta && fields.some((field) => field.name === 'metadata' && isMeta(field.type, 'ObjectMeta'))
  const base = isObject ? 'KubeObject' : struct.typeMeta ? 'TypeMeta' : undefined
  if (base !== undefined) use(writer, '#meta/object.ts', base)
  const members = fields.filter(({ name }) => !(isObject && name === 'metadata'))
  const lines = members.map((field) => renderField(writer, struct, field)).join('')
  const head = `export interface ${struct.name}${base === undefined ? '' : ` extends ${base}`}`
  if (lines !== '') return `${head} {\n${lines}}\n`
  return `export type ${struct.name} = ${base ?? 'Record<string, never>'}\n`
}

/** The struct's fields with those it inlines in their place. */
function membersOf(writer: Writer, struct: Struct): Field[] {
  return struct.fields.flatMap((field) => {
    if (!field.inline || field.type.kind !== 'struct') return [field]
    const member = writer.packages.get(field.type.package)?.structs.get(field.type.name)
    return member === undefined ? [] : membersOf(writer, member)
  })
}

function listItem({ name, typeMeta }: Struct, fields: readonly Field[]): TypeRef | undefined {
  const [metadata, items, more] = fields
  const isList = typeMeta && name.endsWith('List') && more === undefined && items?.name === 'items'
  if (!isList || metadata === undefined || !isMeta(metadata.type, 'ListMeta')) return undefined
  return items.type.kind === 'list' ? items.type.items : undefined
}

function isMeta(type: TypeRef, name: string): boolean {
  return type.kind === 'struct' && type.package === 'meta/v1' && type.name === name
}

function renderField(writer: Writer, struct: Struct, field: Field): string {
  const name = /^[A-Za-z_$][\w$]*$/.test(field.name) ? field.name : `'${field.name}'`
  const isNullable = !field.omitEmpty && canBeNull(field) && (!field.required || isListed(writer, struct, field))
  return `  ${name}${field.omitEmpty ? '?' : ''}: ${typeText(writer, field.type)}${isNullable ? ' | null' : ''}\n`
}

function isListed({ key }: Writer, { name }: Struct, field: Field): boolean {
  return NULLABLE.has(`${key}.${name}.${field.name}`)
}

/** Whether Go writes null for the empty value. */
function canBeNull({ type, pointer }: Field): boolean {
  if (pointer || type.kind === 'list' || type.kind === 'map') return true
  return type.kind === 'scalar' && (type.type === 'time' || type.type === 'microtime' || type.type === 'bytes')
}

function typeText(writer: Writer, type: TypeRef): string {
  switch (type.kind) {
    case 'scalar':
      return scalarText(type.type)
    case 'any':
      return type.goType === 'v1.FieldsV1' ? use(writer, '#meta/object.ts', 'FieldsV1') : 'unknown'
    case 'list': {
      const items = typeText(writer, type.items)
      return items.includes(' ') ? `(${items})[]` : `${items}[]`
    }
    case 'map':
      return `Record<string, ${typeText(writer, type.values)}>`
    case 'alternatives':
      return `JSONSchemaProps | ${ALTERNATIVES[type.name]}`
    case 'struct':
      return structText(writer, type.package, type.name)
  }
}

const ALTERNATIVES: Readonly<Record<string, string>> = {
  JSONSchemaPropsOrArray: 'JSONSchemaProps[]',
  JSONSchemaPropsOrBool: 'boolean',
  JSONSchemaPropsOrStringArray: 'string[]',
}

function structText(writer: Writer, home: string, name: string): string {
  const module = home === 'meta/v1' ? BY_HAND[name] : undefined
  if (module !== undefined) {
    use(writer, module, name)
    // A Status inside another object comes without its kind and apiVersion.
    return name === 'Status' ? 'Partial<Status>' : name
  }
  if (home === writer.key) return name
  const shadowed = writer.packages.get(writer.key)?.structs.has(name)
  const alias = shadowed ? `${name} as ${capitalised(home)}${name}` : name
  use(writer, `../${home}.ts`, alias)
  return shadowed ? `${capitalised(home)}${name}` : name
}

function capitalised(home: string): string {
  return home.replace('/', '').replace(/^./, (letter) => letter.toUpperCase())
}

function scalarText(type: string): string {
  if (type === 'boolean') return 'boolean'
  if (type === 'int-or-string') return 'number | string'
  return type === 'int32' || type === 'int64' || type === 'float64' ? 'number' : 'string'
}

function use(writer: Writer, module: string, name: string): string {
  const names = writer.imports.get(module) ?? new Set()
  writer.imports.set(module, names.add(name))
  return name
}
