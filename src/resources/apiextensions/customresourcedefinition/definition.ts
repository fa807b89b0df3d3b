/**
 * A CustomResourceDefinition in the form that validation uses. Upstream validates its internal version, in which
 * properties that all versions share are fields of `spec`. Field paths in errors follow it: with a single version,
 * schema errors are at `spec.validation`.
 */
import { isDeepStrictEqual } from 'node:util'

import type {
  CustomResourceColumnDefinition,
  CustomResourceConversion,
  CustomResourceDefinitionSpec,
  CustomResourceSubresources,
  CustomResourceValidation,
  SelectableField,
} from '#apis/apiextensions/v1.ts'

/** Properties of one version or of all. */
export interface VersionParts {
  readonly schema?: CustomResourceValidation
  readonly subresources?: CustomResourceSubresources
  readonly additionalPrinterColumns?: readonly CustomResourceColumnDefinition[]
  readonly selectableFields?: readonly SelectableField[]
}

export interface DefinedVersion extends VersionParts {
  readonly name: string
  readonly served: boolean
  readonly storage: boolean
  readonly deprecated?: boolean
  readonly deprecationWarning?: string
}

export interface Definition {
  readonly common: VersionParts
  readonly versions: readonly DefinedVersion[]
  readonly conversion: CustomResourceConversion | undefined
  readonly preservesUnknown: boolean
}

const partNames = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const

export function definitionOf(spec: CustomResourceDefinitionSpec): Definition {
  const all = spec.versions ?? []
  const [first] = all
  const shared = partNames.filter((name) => all.every((one) => isDeepStrictEqual(one[name], first?.[name])))
  const common = Object.fromEntries(shared.map((name) => [name, first?.[name]])) as VersionParts
  const versions = all.map(
    (version) =>
      Object.fromEntries(
        Object.entries(version).filter(([name]) => !shared.some((one) => one === name)),
      ) as unknown as DefinedVersion,
  )
  return {
    common,
    versions,
    conversion: spec.conversion,
    preservesUnknown: spec.preserveUnknownFields === true,
  }
}

/** True if this version has a status subresource. */
export function hasStatus({ common, versions }: Definition, version: DefinedVersion): boolean {
  const perVersion = versions.some(({ subresources }) => subresources !== undefined)
  return (perVersion ? version : common).subresources?.status !== undefined
}

export function hasAnyStatus({ common, versions }: Definition): boolean {
  return [common, ...versions].some(({ subresources }) => subresources?.status !== undefined)
}
