/**
 * Creates the registry's resources for a CustomResourceDefinition: one for each version, with its rules. Schemas,
 * columns and paths are compiled on demand.
 */
import { createHash } from 'node:crypto'

import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '#apis/apiextensions/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import type { CustomResource } from '#apiserver/registry/registry.ts'
import type { CustomRules, FieldText, Resource } from '#apiserver/registry/resource.ts'
import { createCustomShapes } from '#apiserver/registry/shapes.ts'
import { apiVersionOf, compareVersions } from '#meta/kind.ts'
import { deepCopy, type KubeObject, semanticEqual } from '#meta/object.ts'
import type { FieldError } from '#meta/validation/field-path.ts'
import { nameIsSubdomain } from '#meta/validation/names.ts'
import { validateObjectMeta, validateObjectMetaUpdate } from '#meta/validation/object-meta.ts'
import { validateObject, type Verdict } from '#model/custom/object-rules.ts'

import { columnsOf } from './columns.ts'
import { isTerminating, storageVersionOf } from './definition.ts'
import { fieldText, readField, segmentsOf } from './field-path.ts'
import { finalizerWarnings } from './finalizer-warnings.ts'
import { describeCustom } from './openapi-schema.ts'
import { replicasPathsOf, scaleRules } from './scale.ts'
import { hasSoundBundle } from './status-plan.ts'
import { canonical, json, VersionSchema } from './version-schema.ts'

const VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']
/** While the definition is being deleted. */
const LAST_VERBS = ['delete', 'deletecollection', 'get', 'list', 'watch']
const PART_VERBS = ['get', 'patch', 'update']

/** The conversion between versions, if more than the version's name changes. */
export interface Converter {
  /** All objects of one version. Throws StatusError. */
  convert(objects: readonly KubeObject[], apiVersion: string): Promise<readonly KubeObject[]>
}

/** `entry` is that of the established definition. */
export function customResourceOf(entry: Entry, converter: Converter | undefined): CustomResource {
  const definition = entry.object as CustomResourceDefinition
  const stored = storageVersionOf(definition)
  if (stored === undefined) throw new Error(`${entry.name} has no storage version`)
  const schemas = new Map(definition.spec.versions.map(({ name }) => [name, new VersionSchema(entry, name)]))
  const makeOne = (version: CustomResourceDefinitionVersion): Resource =>
    new VersionMaker(definition, { schemas, stored: stored.name, converter }).make(version)
  const made = new Map(definition.spec.versions.map((version) => [version.name, makeOne(version)]))
  return {
    stored: made.get(stored.name) as Resource,
    served: definition.spec.versions.filter(({ served }) => served).map(({ name }) => made.get(name) as Resource),
  }
}

interface Versions {
  readonly schemas: ReadonlyMap<string, VersionSchema>
  /** The storage version. */
  readonly stored: string
  readonly converter: Converter | undefined
}

class VersionMaker {
  readonly #definition: CustomResourceDefinition
  readonly #versions: Versions

  constructor(definition: CustomResourceDefinition, versions: Versions) {
    this.#definition = definition
    this.#versions = versions
  }

  make(version: CustomResourceDefinitionVersion): Resource {
    const { schemas } = this.#versions
    const schema = schemas.get(version.name) as VersionSchema
    const kind = this.#kindOf(version)
    const { scale } = version.subresources ?? {}
    const validateChange = createValidator(schema, kind.namespaced)
    const deprecation = this.#deprecationOf(version)
    const hasStatus = version.subresources?.status !== undefined
    let selectors: Resource['fieldSelectors']
    let columns: Resource['columns']
    return {
      kind,
      shapes: createCustomShapes(kind, (name) => schemas.get(name)?.typed),
      storagePrefix: `${kind.group}/${kind.plural}`,
      nameRule: nameIsSubdomain,
      metadataRules: { plainFinalizers: true },
      putNeedsVersion: true,
      custom: this.#customOf(schema, kind),
      generation: hasStatus ? 'spec' : isChangedBesideMetadata,
      applyDefaults: (object) => void schema.applyDefaults(object),
      // Fields that admission adds are validated like those of clients.
      prepareCreate: (object) => schema.prepare(object),
      prepareUpdate: (next, old) => (hasStatus ? prepareBut(schema, next, old) : schema.prepare(next)),
      validate: (object) => validateChange(object).errors,
      validateUpdate: (next, old) => validateChange(next, old).errors,
      warnings: (next, old) => [...validateChange(next, old).warnings, ...finalizerWarnings(next, old)],
      status: {
        prepareUpdate(next, old) {
          if (old.metadata.uid !== undefined) next.metadata.uid = old.metadata.uid
          schema.preparePart(next, 'status')
        },
        validateUpdate: (next, old) => validateChange(next, old, 'status').errors,
        warnings: (next, old) => validateChange(next, old, 'status').warnings,
      },
      ...(scale !== undefined && { scale: scaleRules(scale, replicasPathsOf(this.#definition.spec)) }),
      ...(deprecation !== undefined && { deprecation }),
      get fieldSelectors() {
        return (selectors ??= selectorsOf(schema.declared))
      },
      get columns() {
        return (columns ??= columnsOf(schema.declared.additionalPrinterColumns))
      },
    }
  }

  #kindOf({ name: version, subresources }: CustomResourceDefinitionVersion): Kind {
    const { spec, status } = this.#definition
    const { plural, singular = '', kind, listKind = '', shortNames = [], categories = [] } = status.acceptedNames
    const { group } = spec
    const own = { group, version, kind }
    const scale = { group: 'autoscaling', version: 'v1', kind: 'Scale' }
    return {
      ...own,
      plural,
      singular,
      listKind,
      namespaced: spec.scope === 'Namespaced',
      shortNames,
      categories,
      verbs: isTerminating(this.#definition) ? LAST_VERBS : VERBS,
      subresources: [
        ...(subresources?.status === undefined ? [] : [{ name: 'status', kind: own, verbs: PART_VERBS }]),
        ...(subresources?.scale === undefined ? [] : [{ name: 'scale', kind: scale, verbs: PART_VERBS }]),
      ],
      storage: { group, version: this.#versions.stored },
      storageVersionHash: storageHash(`${group}/${this.#versions.stored}/${kind}`),
    }
  }

  #customOf(schema: VersionSchema, kind: Kind): CustomRules {
    const { stored, converter } = this.#versions
    const { group } = kind
    const own = apiVersionOf(kind)
    const storedAs = apiVersionOf({ group, version: stored })
    const { schemas } = this.#versions
    const { uid, generation } = this.#definition.metadata
    // A stored object is decoded and defaulted by the schema of its stored version, and then pruned to this one's.
    const show = (object: KubeObject): KubeObject => {
      const home = homeOf(object)
      home.settle(object)
      if (home !== schema) schema.trim(object)
      return canonical({ ...object, apiVersion: own })
    }
    const homeOf = ({ apiVersion = own }: KubeObject): VersionSchema =>
      schemas.get(apiVersion.slice(group.length + 1)) ?? schema
    const ask = async (objects: readonly KubeObject[], to: string): Promise<readonly KubeObject[]> => {
      for (const object of objects) homeOf(object).settle(object)
      const converted = (await converter?.convert(objects.map(canonical), to)) ?? []
      return converted.map((object) => {
        homeOf(object).trim(object)
        return canonical(object)
      })
    }
    return {
      storedAs,
      identity: `${uid} ${generation}`,
      describe: (dialect) => describeCustom(kind, schema.declared, dialect),
      prune: (object, keepsNulls) => schema.prune(object, keepsNulls),
      show,
      ...(converter !== undefined && { ask: (objects: readonly KubeObject[]) => ask(objects, own) }),
      async store(object) {
        if (own === storedAs) return object
        if (converter === undefined) return { ...object, apiVersion: storedAs }
        return (await ask([deepCopy(object)], storedAs))[0] as KubeObject
      },
      ...(isTerminating(this.#definition) && {
        closedBecause: 'create not allowed while custom resource definition is terminating',
      }),
      ...(hasSoundBundle(this.#definition) ? {} : { brokenBecause: 'error resolving resource' }),
    }
  }

  /** The Warning of a deprecated version. */
  #deprecationOf({ name, deprecated, deprecationWarning }: CustomResourceDefinitionVersion): string | undefined {
    if (deprecated !== true) return undefined
    if (deprecationWarning !== undefined) return deprecationWarning
    const { group, names, versions } = this.#definition.spec
    const better = versions
      .filter((one) => one.served && one.deprecated !== true && compareVersions(name, one.name) < 0)
      .map((one) => one.name)
      .sort((one, other) => compareVersions(other, one))
    const instead = better[0] === undefined ? '' : `; use ${group}/${better[0]} ${names.kind}`
    return `${group}/${name} ${names.kind} is deprecated${instead}`
  }
}

/** Status comes from the stored object, whatever this version would make of it. */
function prepareBut(schema: VersionSchema, next: KubeObject, old: KubeObject): void {
  schema.prepare(next)
  if ('status' in old) Object.assign(next, { status: old.status })
  else if ('status' in next) delete next.status
}

function isChangedBesideMetadata(next: KubeObject, old: KubeObject): boolean {
  const { metadata: _, ...now } = next
  const { metadata: __, ...before } = old
  return !semanticEqual(now, before)
}

/** Errors and warnings come from one validation, and are requested one after the other. */
function createValidator(
  schema: VersionSchema,
  namespaced: boolean,
): (next: KubeObject, old?: KubeObject, part?: 'status') => Verdict {
  let last: { readonly next: KubeObject; readonly old: KubeObject | undefined; readonly verdict: Verdict } | undefined
  return (next, old, part) => {
    if (last?.next === next && last.old === old && last.verdict.errors.length === 0) {
      const { verdict } = last
      last = undefined
      return verdict
    }
    const metadataErrors = (): FieldError[] => validateMetadata(next, old, namespaced)
    const change = { next: json(next), old: old && json(old), part, metadataErrors }
    const verdict = validateObject(change, schema.structural, schema.declared.subresources?.scale)
    last = { next, old, verdict }
    return verdict
  }
}

function validateMetadata(next: KubeObject, old: KubeObject | undefined, namespaced: boolean): FieldError[] {
  if (old !== undefined) return validateObjectMetaUpdate(next.metadata, old.metadata)
  return validateObjectMeta(next.metadata, { namespaced, name: nameIsSubdomain })
}

function selectorsOf({
  selectableFields = [],
}: CustomResourceDefinitionVersion): Record<string, FieldText<KubeObject>> {
  return Object.fromEntries(
    selectableFields.map(({ jsonPath }) => {
      const segments = segmentsOf(jsonPath)
      return [segments.join('.'), (object: KubeObject) => fieldText(readField(object, segments))]
    }),
  )
}

/** The storage version hash of discovery, by which clients see that the storage version has changed. */
function storageHash(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, 8).toString('base64')
}
