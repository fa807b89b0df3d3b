/**
 * The schema of one version, made of the definition when it is first needed: most definitions of a cluster are there for
 * objects that nobody touches. The definition's text is what is kept until then.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '#apis/apiextensions/v1.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { CUSTOM_OBJECT } from '#apiserver/registry/shapes.ts'
import type { JsonObject } from '#lib/json-value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { CodecError } from '#meta/codec/error.ts'
import type { KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { applyDefaults, dropNulls } from '#model/custom/defaults.ts'
import { coerceEmbedded } from '#model/custom/embedded.ts'
import { prune } from '#model/custom/prune.ts'
import { type Structural, structuralOf } from '#model/custom/structural.ts'
import { schemaOf } from '#model/custom/typed-schema.ts'

export class VersionSchema {
  readonly #entry: Entry
  readonly #version: string
  #structural: Structural | undefined
  #typed: StructSchema | undefined

  constructor(entry: Entry, version: string) {
    this.#entry = entry
    this.#version = version
  }

  /** The version as the definition has it now; not to be kept. */
  get declared(): CustomResourceDefinitionVersion {
    const { spec } = this.#entry.object as CustomResourceDefinition
    return spec.versions.find(({ name }) => name === this.#version) as CustomResourceDefinitionVersion
  }

  get structural(): Structural {
    this.#structural ??= structuralOf(this.declared.schema?.openAPIV3Schema ?? ANYTHING)
    return this.#structural
  }

  /** What server-side apply merges by. */
  get typed(): StructSchema {
    const { group, names } = (this.#entry.object as CustomResourceDefinition).spec
    this.#typed ??= schemaOf(this.structural, `${group}/${this.#version}, Kind=${names.kind}`)
    return this.#typed
  }

  /** As `CustomRules.prune`. Throws CodecError for what is no metadata. */
  prune(object: KubeObject, keepsNulls = false): string[] {
    const unknown: string[] = []
    const fault = coerceEmbedded(json(object), this.structural, { unknown })
    if (fault !== undefined) throw new CodecError('type', fieldErrorText(fault))
    const pruned = prune(json(object), this.structural)
    if (!keepsNulls) dropNulls(json(object), this.structural)
    return [...unknown, ...pruned].sort()
  }

  /** Defaults of an embedded object's metadata are pruned like what clients send. */
  applyDefaults(object: KubeObject): boolean {
    const isChanged = applyDefaults(json(object), this.structural)
    if (isChanged) coerceEmbedded(json(object), this.structural, { dropInvalid: true })
    return isChanged
  }

  /** Leaves in the object what this version knows. */
  trim(object: KubeObject): void {
    this.#leaveKnown(object)
    dropNulls(json(object), this.structural)
  }

  /** The same, and fills in defaults. */
  settle(object: KubeObject): void {
    this.trim(object)
    this.applyDefaults(object)
  }

  /** What is about to be judged: as `settle`, but for nulls, which are judged as they are. */
  prepare(object: KubeObject): void {
    this.#leaveKnown(object)
    this.applyDefaults(object)
  }

  #leaveKnown(object: KubeObject): void {
    coerceEmbedded(json(object), this.structural, { dropInvalid: true })
    prune(json(object), this.structural)
  }

  /** The same for one part; the others are left as they are. */
  preparePart(object: KubeObject, name: string): void {
    const value = json(object)[name]
    const part = { metadata: {}, ...(value !== undefined && { [name]: value }) }
    this.prepare(part)
    const prepared = json(part)[name]
    if (prepared !== undefined) json(object)[name] = prepared
    else delete json(object)[name]
  }
}

const ANYTHING = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

/** The object with its keys in order. It is given away. */
export function canonical(object: KubeObject): KubeObject {
  return decodeValue(CUSTOM_OBJECT, object, 'Ignore', { offences: [] }) as KubeObject
}

export function json(object: KubeObject): JsonObject {
  return object as unknown as JsonObject
}
