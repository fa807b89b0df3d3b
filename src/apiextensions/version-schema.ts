/**
 * The schema of one version of a custom resource. It is compiled on first use, because in most clusters most
 * definitions have no objects.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '#apis/apiextensions/v1.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { CUSTOM_OBJECT } from '#apiserver/registry/shapes.ts'
import type { JsonObject } from '#lib/json/value.ts'
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

  /** The current version of the definition; do not retain it. */
  get declared(): CustomResourceDefinitionVersion {
    const { spec } = this.#entry.object as CustomResourceDefinition
    return spec.versions.find(({ name }) => name === this.#version) as CustomResourceDefinitionVersion
  }

  get structural(): Structural {
    this.#structural ??= structuralOf(this.declared.schema?.openAPIV3Schema ?? ANYTHING)
    return this.#structural
  }

  /** The schema for server-side apply. */
  get typed(): StructSchema {
    const { group, names } = (this.#entry.object as CustomResourceDefinition).spec
    this.#typed ??= schemaOf(this.structural, `${group}/${this.#version}, Kind=${names.kind}`)
    return this.#typed
  }

  /** See `CustomRules.prune`. Throws CodecError for invalid metadata. */
  prune(object: KubeObject, keepsNulls = false): string[] {
    const unknown: string[] = []
    const fault = coerceEmbedded(json(object), this.structural, { unknown })
    if (fault !== undefined) throw new CodecError('type', fieldErrorText(fault))
    const pruned = prune(json(object), this.structural)
    if (!keepsNulls) dropNulls(json(object), this.structural)
    return [...unknown, ...pruned].sort()
  }

  /** Defaults of an embedded object's metadata are pruned like a client's values. */
  applyDefaults(object: KubeObject): boolean {
    const isChanged = applyDefaults(json(object), this.structural)
    if (isChanged) coerceEmbedded(json(object), this.structural, { dropInvalid: true })
    return isChanged
  }

  /** Removes fields that this version does not know. */
  trim(object: KubeObject): void {
    this.#leaveKnown(object)
    dropNulls(json(object), this.structural)
  }

  /** The same, with defaults. */
  settle(object: KubeObject): void {
    this.trim(object)
    this.applyDefaults(object)
  }

  /** Prepares an object for validation: like `settle`, but keeps nulls, which validation checks. */
  prepare(object: KubeObject): void {
    this.#leaveKnown(object)
    this.applyDefaults(object)
  }

  #leaveKnown(object: KubeObject): void {
    coerceEmbedded(json(object), this.structural, { dropInvalid: true })
    prune(json(object), this.structural)
  }

  /** The same for one part; the others stay unchanged. */
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

/** The object with its keys in order. Takes ownership of it. */
export function canonical(object: KubeObject): KubeObject {
  return decodeValue(CUSTOM_OBJECT, object, 'Ignore', { offences: [] }) as KubeObject
}

export function json(object: KubeObject): JsonObject {
  return object as unknown as JsonObject
}
