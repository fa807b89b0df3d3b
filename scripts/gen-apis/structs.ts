/**
 * Joins the three sources of a struct: protobuf has the fields in Go's order, wire-presence how Go encodes them,
 * OpenAPI how they merge.
 */
import { EMPTY_COUNTS, GATES, JSON_ONLY, PRESENCE, TYPE_META } from './corrections.ts'
import type { Definition, Facts, Message, MessageField, Presence, Property } from './facts.ts'
import goNames from './go-names.json' with { type: 'json' }
import { readType, type TypeRef } from './type-refs.ts'

export interface Struct {
  readonly name: string
  readonly typeMeta: boolean
  readonly atomic: boolean
  readonly jsonOnly: boolean
  readonly fields: readonly Field[]
}

export interface Field {
  readonly name: string
  readonly type: TypeRef
  /** JSON has the members of the struct that `type` names in place of the field. */
  readonly inline: boolean
  /** Protobuf field number; 0 where there is none. */
  readonly number: number
  readonly pointer: boolean
  /** The effect of Go's tags: omitempty has no effect on a struct that is no pointer. */
  readonly omitEmpty: boolean
  readonly required: boolean
  readonly gate: string | undefined
  readonly emptyCounts: boolean
  readonly openapi: Property
}

/** Where a struct is found. */
export interface Source {
  /** `core/v1`. */
  readonly key: string
  /** `k8s.io.api.core.v1`. */
  readonly proto: string
  readonly facts: Facts
}

export function buildStruct({ key, proto, facts }: Source, name: string, isKind: boolean): Struct {
  const id = `${key}.${name}`
  const json = JSON_ONLY[id]
  const message = json?.[0] ?? facts.messages.get(proto)?.[name] ?? {}
  const definition = definitionOf(facts, proto, name)
  const owner: Owner = { id, proto, shownBy: definition ?? embedderOf({ key, proto, facts }, name) }
  const presence = { ...json?.[1], ...presenceOf({ key, proto, facts }, name) }
  return {
    name,
    typeMeta: isKind ? message['kind'] === undefined : TYPE_META.has(id),
    atomic: definition?.['x-kubernetes-map-type'] === 'atomic',
    jsonOnly: json !== undefined,
    fields: Object.entries(message).map(([field, type]) => buildField(owner, [field, type], presence[field])),
  }
}

/** The OpenAPI definition of a struct; those that are always inlined have none. */
export function definitionOf(facts: Facts, proto: string, name: string): Definition | undefined {
  return facts.definitions.get(`${proto.replace(/^k8s\.io/, 'io.k8s').replaceAll('_', '-')}.${name}`)
}

interface Owner {
  /** `core/v1.PodSpec`. */
  readonly id: string
  readonly proto: string
  /** The definition in which the struct's members appear. */
  readonly shownBy: Definition | undefined
}

function buildField(owner: Owner, [protoName, field]: [string, MessageField], presence: Presence | undefined): Field {
  if (presence === undefined) throw new Error(`No presence for "${protoName}" of "${owner.id}"; mend corrections.ts`)
  const [flags, name] = typeof presence === 'string' ? [presence, protoName] : presence
  const type = readType(field, { proto: owner.proto, goType: goNameOf(owner.id, protoName) })
  const pointer = flags.includes('p')
  const isInlined = flags.includes('i')
  return {
    type,
    inline: isInlined,
    number: field.id,
    pointer,
    omitEmpty: flags.includes('z') || (flags.includes('o') && (pointer || !isGoStruct(type))),
    ...(isInlined ? INLINED : openapiOf(owner, name)),
  }
}

type OpenApiPart = Pick<Field, 'name' | 'required' | 'gate' | 'emptyCounts' | 'openapi'>

/** OpenAPI does not know the field itself, only what is in it. */
const INLINED: OpenApiPart = { name: '', required: false, gate: undefined, emptyCounts: false, openapi: {} }

function openapiOf({ id, shownBy }: Owner, name: string): OpenApiPart {
  return {
    name,
    required: shownBy?.required?.includes(name) ?? false,
    gate: GATES[id.replace(/\/\w+/, '')]?.[name],
    emptyCounts: EMPTY_COUNTS[id.replace(/\/\w+/, '')]?.includes(name) ?? false,
    openapi: shownBy?.properties?.[name] ?? {},
  }
}

function goNameOf(id: string, field: string): string | undefined {
  const [key = '', struct = ''] = id.split('.')
  return (goNames as GoNames)[key]?.[struct]?.[field]
}

/**
 * Package → struct → protobuf field → Go's type, where it says more than protobuf: names of string types and the like.
 * Read in the Go sources of v1.36, because error texts show them and no machine-readable document does.
 */
type GoNames = Record<string, Record<string, Record<string, string>>>

/** Entries of go-names.json that name no field, as `core/v1.PodStatus.phase`. */
export function staleGoNames(facts: Facts, protoOf: ReadonlyMap<string, string>): string[] {
  return Object.entries(goNames as GoNames).flatMap(([key, structs]) => {
    const messages = facts.messages.get(protoOf.get(key) ?? '') ?? {}
    const named = Object.entries(structs).flatMap(([name, fields]) => Object.keys(fields).map((field) => [name, field]))
    const stale = named.filter(([name = '', field = '']) => messages[name]?.[field] === undefined)
    return stale.map((path) => `${key}.${path.join('.')}`)
  })
}

/** Whether Go holds values of the type as structs, which omitempty never leaves out. */
function isGoStruct(type: TypeRef): boolean {
  if (type.kind === 'scalar') return ['quantity', 'time', 'microtime', 'duration', 'int-or-string'].includes(type.type)
  return type.kind === 'struct' || type.kind === 'any' || type.kind === 'alternatives'
}

function presenceOf({ key, proto, facts }: Source, name: string): Readonly<Record<string, Presence>> {
  return { ...facts.presence.get(proto)?.[name], ...PRESENCE[`${key}.${name}`] }
}

/** The definition of a struct of the same package that inlines this one. Any will do: they show the same members. */
function embedderOf(source: Source, name: string): Definition | undefined {
  const { proto, facts } = source
  const inlines = ([embedder, message]: [string, Message]): boolean => {
    const presence = presenceOf(source, embedder)
    return Object.entries(message).some(([field, { type }]) => type === name && presence[field] === 'vi')
  }
  const embedders = Object.entries(facts.messages.get(proto) ?? {}).filter(inlines)
  const shown = embedders.map(([embedder]) => definitionOf(facts, proto, embedder))
  return shown.find((definition) => definition !== undefined)
}
