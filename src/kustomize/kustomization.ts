/** Reads the kustomization file strictly, like upstream. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import type { GeneratorArgs, GeneratorOptions } from './generators.ts'
import { KustomizeError } from './ids.ts'
import type { Loader } from './loader.ts'
import type { SortOptions } from './order.ts'
import type { Patch } from './patches.ts'
import type { FieldSpec } from './paths.ts'
import type { Replacement } from './replacements.ts'
import type { ImageChange, ReplicaCount } from './transformers.ts'
import type { Var } from './vars.ts'

export interface LabelEntry {
  readonly pairs?: Readonly<Record<string, string>>
  readonly includeSelectors?: boolean
  readonly includeTemplates?: boolean
  readonly fields?: readonly FieldSpec[]
}

export interface Kustomization {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata?: JsonObject
  readonly openapi?: Readonly<Record<string, string>>
  readonly namePrefix?: string
  readonly nameSuffix?: string
  readonly namespace?: string
  readonly commonLabels?: Readonly<Record<string, string>>
  readonly labels?: readonly LabelEntry[]
  readonly commonAnnotations?: Readonly<Record<string, string>>
  readonly patchesStrategicMerge?: readonly string[]
  readonly patchesJson6902?: readonly Patch[]
  readonly patches?: readonly Patch[]
  readonly images?: readonly ImageChange[]
  readonly imageTags?: readonly ImageChange[]
  readonly replacements?: readonly (Replacement & { readonly path?: string })[]
  readonly replicas?: readonly ReplicaCount[]
  readonly vars?: readonly Var[]
  readonly sortOptions?: SortOptions
  readonly resources?: readonly string[]
  readonly components?: readonly string[]
  readonly crds?: readonly string[]
  readonly bases?: readonly string[]
  readonly configMapGenerator?: readonly GeneratorArgs[]
  readonly secretGenerator?: readonly GeneratorArgs[]
  readonly helmGlobals?: JsonObject
  readonly helmCharts?: readonly JsonObject[]
  readonly helmChartInflationGenerator?: readonly JsonObject[]
  readonly generatorOptions?: GeneratorOptions
  readonly configurations?: readonly string[]
  readonly generators?: readonly string[]
  readonly transformers?: readonly string[]
  readonly validators?: readonly string[]
  readonly buildMetadata?: readonly string[]
}

const TEXTS = ['apiVersion', 'kind', 'namePrefix', 'nameSuffix', 'namespace']
const MAPS = ['commonLabels', 'commonAnnotations', 'openapi']
const OBJECTS = ['metadata', 'sortOptions', 'helmGlobals', 'generatorOptions']
const PATHS =
  'patchesStrategicMerge resources components crds bases configurations generators transformers validators buildMetadata'.split(
    ' ',
  )
const LISTS =
  'labels patchesJson6902 patches images imageTags replacements replicas vars configMapGenerator secretGenerator helmCharts helmChartInflationGenerator'.split(
    ' ',
  )
const FIELDS = [...TEXTS, ...MAPS, ...OBJECTS, ...PATHS, ...LISTS]

const NAMES = ['kustomization.yaml', 'kustomization.yml', 'Kustomization']

export interface FoundKustomization {
  readonly file: string
  readonly kustomization: Kustomization
  /** The warnings about deprecated fields. */
  readonly warnings: readonly string[]
}

/** Throws KustomizeError. */
export async function readKustomization(loader: Loader): Promise<FoundKustomization> {
  const found: [file: string, text: string][] = []
  for (const file of NAMES) {
    const text = await loader.load(file).catch(() => undefined)
    if (text !== undefined) found.push([file, text.toString()])
  }
  const [first] = found
  if (first === undefined) {
    const names = NAMES.map((name) => `'${name}'`)
    throw new KustomizeError(
      `unable to find one of ${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''} in directory '${loader.root}'`,
    )
  }
  if (found.length > 1) throw new KustomizeError(`Found multiple kustomization files under: ${loader.root}\n`)
  const [file, text] = first
  const kustomization = parseKustomization(text)
  const warnings = OLD_FIELDS.filter(([name]) => kustomization[name] !== undefined).map(([, warning]) => warning)
  if (Object.keys(kustomization).every((name) => name === 'apiVersion' || name === 'kind')) {
    throw new KustomizeError('kustomization.yaml is empty')
  }
  const problems = typeProblems(kustomization)
  if (problems.length > 0) {
    throw new KustomizeError(`Failed to read kustomization file under ${loader.root}:\n${problems.join('\n')}`)
  }
  return { file, kustomization, warnings }
}

function typeProblems({ kind = 'Kustomization', apiVersion = '' }: Kustomization): string[] {
  const isComponent = kind === 'Component'
  const wanted = isComponent ? 'kustomize.config.k8s.io/v1alpha1' : 'kustomize.config.k8s.io/v1beta1'
  return [
    ...(isComponent || kind === 'Kustomization' ? [] : ['kind should be Kustomization or Component']),
    ...(apiVersion === '' || apiVersion === wanted ? [] : [`apiVersion for ${kind} should be ${wanted}`]),
  ]
}

const FIX = "Run 'kustomize edit fix' to update your Kustomization automatically."

/** In upstream's order. */
const OLD_FIELDS: readonly (readonly [keyof Kustomization, string])[] = [
  ['bases', `# Warning: 'bases' is deprecated. Please use 'resources' instead. ${FIX}`],
  ['commonLabels', `# Warning: 'commonLabels' is deprecated. Please use 'labels' instead. ${FIX}`],
  ['imageTags', `# Warning: 'imageTags' is deprecated. Please use 'images' instead. ${FIX}`],
  ['patchesJson6902', `# Warning: 'patchesJson6902' is deprecated. Please use 'patches' instead. ${FIX}`],
  ['patchesStrategicMerge', `# Warning: 'patchesStrategicMerge' is deprecated. Please use 'patches' instead. ${FIX}`],
  [
    'vars',
    "# Warning: 'vars' is deprecated. Please use 'replacements' instead. [EXPERIMENTAL] Run 'kustomize edit fix' to update your Kustomization automatically.",
  ],
]

function parseKustomization(text: string): Kustomization {
  let value: JsonValue
  try {
    value = parseYaml(text) ?? {}
  } catch (error) {
    throw new KustomizeError(`invalid Kustomization: ${(error as Error).message}`, { cause: error })
  }
  if (!isJsonObject(value)) {
    throw new KustomizeError(
      'invalid Kustomization: json: cannot unmarshal array into Go value of type types.Kustomization',
    )
  }
  const out: JsonObject = {}
  for (const [name, member] of Object.entries(value)) {
    const known =
      FIELDS.find((field) => field === name) ?? FIELDS.find((field) => field.toLowerCase() === name.toLowerCase())
    if (known === undefined) throw new KustomizeError(`invalid Kustomization: json: unknown field "${name}"`)
    if (member === null) continue
    if (!hasType(known, member)) throw new KustomizeError(`invalid Kustomization: ${mistyped(known, member)}`)
    out[known] = member
  }
  return out
}

function hasType(name: string, value: unknown): boolean {
  if (TEXTS.includes(name)) return typeof value === 'string'
  if (PATHS.includes(name)) return Array.isArray(value) && value.every((one) => typeof one === 'string')
  if (LISTS.includes(name)) return Array.isArray(value)
  return typeof value === 'object' && !Array.isArray(value)
}

function mistyped(name: string, value: unknown): string {
  const shown = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
  const type = TEXTS.includes(name)
    ? 'string'
    : PATHS.includes(name)
      ? '[]string'
      : MAPS.includes(name)
        ? 'map[string]string'
        : 'object'
  return `json: cannot unmarshal ${shown} into Go struct field Kustomization.${name} of type ${type}`
}
