/**
 * Builds a kustomization: collects resources of files and bases, runs generators, components and transformers. At the
 * end names get hashes, references follow the names, and vars are replaced.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import { DEFAULT_CONFIG, EMPTY_CONFIG, mergeConfigs, mergeSpecs, type TransformerConfig } from './field-specs.ts'
import { generate, type GeneratorArgs, hashOf, mergedOptions } from './generators.ts'
import { KustomizeError, misconfigured, within } from './ids.ts'
import { type FoundKustomization, type Kustomization, readKustomization } from './kustomization.ts'
import { folderAt, isRemote, isRepository, Loader, type LoaderOptions } from './loader.ts'
import { sortResources } from './order.ts'
import { applyJson6902, applyPatch, applyStrategicMerges } from './patches.ts'
import { fixReferences } from './references.ts'
import { type Replacement, replace } from './replacements.ts'
import { parseResources, type Resource, Resources } from './resource.ts'
import { affix, setEntries, setImages, setNamespace, setReplicas } from './transformers.ts'
import { resolveVars, type Var } from './vars.ts'

export interface BuildOptions extends LoaderOptions {
  /** Receives warnings about deprecated fields and unused vars. */
  readonly warn: (text: string) => void
  /** Receives log messages. */
  readonly log?: (text: string) => void
  /** Keeps the input order, unless the kustomization sets another. */
  readonly keepOrder?: boolean
}

/** The accumulated state of a build. */
interface Accumulator {
  readonly resources: Resources
  config: TransformerConfig
  readonly vars: Var[]
  openapi: JsonObject | undefined
}

interface Target {
  readonly loader: Loader
  readonly options: BuildOptions
}

/** The resources as YAML documents. Throws KustomizeError. */
export async function buildKustomization(folder: string, options: BuildOptions): Promise<string> {
  if (isRepository(folder)) {
    throw new KustomizeError(
      `"${folder}" is a git repository; remote bases are not supported: clone it and use its folder`,
    )
  }
  let root: string
  try {
    root = folderAt(folder)
  } catch (error) {
    throw new KustomizeError(`must build at directory: ${(error as Error).message}`, { cause: error })
  }
  const target = { loader: new Loader(root, options), options }
  const found = await readKustomization(target.loader)
  for (const text of found.warnings) options.warn(text)
  const all = emptyAccumulated()
  await accumulate(target, found, all)
  addHashes(all.resources)
  fixReferences(all.resources, all.config.nameReference)
  const unused = resolveVars(all.resources, all.vars, all.config.varReference)
  if (unused.length > 0) options.log?.(`well-defined vars that were never replaced: ${unused.join(',')}`)
  all.resources.list = all.resources.list.filter(({ annotations }) => annotations[LOCAL_CONFIG] === undefined)
  const { sortOptions, buildMetadata = [] } = found.kustomization
  if (sortOptions !== undefined) sortResources(all.resources, sortOptions)
  else if (options.keepOrder !== true) sortResources(all.resources, { order: 'legacy' })
  if (buildMetadata.includes('managedByLabel')) {
    setEntries(all.resources, { 'app.kubernetes.io/managed-by': 'kustomize-v5.8.1' }, [
      { path: 'metadata/labels', create: true },
    ])
  }
  return all.resources.list.map(({ value }) => stringifyYaml(value)).join('---\n')
}

const LOCAL_CONFIG = 'config.kubernetes.io/local-config'

function emptyAccumulated(): Accumulator {
  return { resources: new Resources(), config: EMPTY_CONFIG, vars: [], openapi: undefined }
}

function addHashes({ list }: Resources): void {
  for (const resource of list.filter(({ needsHash }) => needsHash)) {
    const hash = hashOf(resource.value)
    resource.remember()
    resource.setMetadata('name', `${resource.name}-${hash}`)
  }
}

async function accumulate(target: Target, { kustomization }: FoundKustomization, into: Accumulator): Promise<void> {
  const { loader } = target
  refuseUnbuilt(kustomization)
  into.openapi ??= await openapiOf(kustomization, loader)
  try {
    for (const path of [...(kustomization.resources ?? []), ...(kustomization.bases ?? [])]) {
      await addResource(target, path, into)
    }
  } catch (error) {
    throw within('accumulating resources', error)
  }
  into.config = mergeConfigs(into.config, await configOf(kustomization, loader))
  await runGenerators(kustomization, loader, into.resources)
  try {
    for (const path of kustomization.components ?? []) await addComponent(target, path, into)
  } catch (error) {
    throw within('accumulating components', error)
  }
  await transform(kustomization, loader, into)
  into.vars.push(...(kustomization.vars ?? []))
}

/** Features that upstream's kubectl enables only by flags or external programs; they are rejected by name here. */
function refuseUnbuilt(kustomization: Kustomization): void {
  const { helmCharts = [], helmChartInflationGenerator = [] } = kustomization
  const [chart] = [...helmCharts, ...helmChartInflationGenerator]
  if (chart !== undefined) {
    throw misconfigured('HelmChartInflationGenerator', chart, 'must specify --enable-helm')
  }
  for (const name of ['generators', 'transformers', 'validators', 'crds'] as const) {
    if ((kustomization[name] ?? []).length > 0)
      throw new KustomizeError(`"${name}" of a kustomization is not supported`)
  }
  const unbuilt = (kustomization.buildMetadata ?? []).find((one) => one !== 'managedByLabel')
  if (unbuilt !== undefined)
    throw new KustomizeError(`"buildMetadata: [${unbuilt}]" of a kustomization is not supported`)
}

async function openapiOf({ openapi = {} }: Kustomization, loader: Loader): Promise<JsonObject | undefined> {
  const { path, version } = openapi
  if (version !== undefined)
    throw new KustomizeError('"openapi.version" of a kustomization is not supported; use openapi.path')
  if (path === undefined) return undefined
  const value = parseYaml((await loader.load(path)).toString())
  return value !== null && isJsonObject(value) ? value : undefined
}

async function addResource(target: Target, path: string, into: Accumulator): Promise<void> {
  const { loader } = target
  let failure: Error
  try {
    const text = (await loader.load(path)).toString()
    into.resources.appendAll(readFile(text, path))
    return
  } catch (error) {
    const { message } = error as Error
    const isClash = message.startsWith('may not add')
    failure = new KustomizeError(
      isClash ? `merging resources from '${path}': ${message}` : `accumulating resources from '${path}': ${message}`,
      { cause: error },
    )
  }
  try {
    const inner = loader.enter(path)
    await addFolder({ ...target, loader: inner }, into)
  } catch (error) {
    if (failure.message.includes('MalformedYAMLError') || isRemote(path)) throw failure
    throw new KustomizeError(`accumulation err='${failure.message}': ${(error as Error).message}`, { cause: error })
  }
}

function readFile(text: string, path: string): Resource[] {
  try {
    return parseResources(text)
  } catch (error) {
    if (error instanceof KustomizeError) throw error
    throw new KustomizeError(`MalformedYAMLError: ${(error as Error).message} in File: ${path}`, { cause: error })
  }
}

async function readFolder({ loader, options }: Target): Promise<FoundKustomization> {
  try {
    const found = await readKustomization(loader)
    for (const text of found.warnings) options.warn(text)
    return found
  } catch (error) {
    throw within(`couldn't make target for path '${loader.root}'`, error)
  }
}

async function addFolder(target: Target, into: Accumulator): Promise<void> {
  const { loader } = target
  const found = await readFolder(target)
  if (found.kustomization.kind === 'Component') {
    throw new KustomizeError(`expected kind != 'Component' for path '${loader.root}'`)
  }
  const inner = { ...emptyAccumulated(), openapi: into.openapi }
  try {
    await accumulate(target, found, inner)
  } catch (error) {
    throw within(`recursed accumulation of path '${loader.root}'`, error)
  }
  try {
    into.resources.appendAll(inner.resources.list)
    into.config = mergeConfigs(into.config, inner.config)
    into.vars.push(...inner.vars)
    into.openapi ??= inner.openapi
  } catch (error) {
    throw within(`recursed merging from path '${loader.root}'`, error)
  }
}

/** A component changes the resources accumulated so far. */
async function addComponent(target: Target, path: string, into: Accumulator): Promise<void> {
  let loader: Loader
  try {
    loader = target.loader.enter(path)
  } catch (error) {
    throw new KustomizeError(`loader.New ${JSON.stringify((error as Error).message)}`, { cause: error })
  }
  try {
    const inner = { ...target, loader }
    const found = await readFolder(inner)
    const { kind = 'Kustomization' } = found.kustomization
    if (kind !== 'Component') {
      throw new KustomizeError(`expected kind 'Component' for path '${loader.root}' but got '${kind}'`)
    }
    await accumulate(inner, found, into).catch((error: unknown) => {
      throw within(`recursed accumulation of path '${loader.root}'`, error)
    })
  } catch (error) {
    throw new KustomizeError(`accumulateDirectory: ${JSON.stringify((error as Error).message)}`, { cause: error })
  }
}

async function configOf({ configurations = [] }: Kustomization, loader: Loader): Promise<TransformerConfig> {
  let config = EMPTY_CONFIG
  for (const path of configurations) {
    const value = parseYaml((await loader.load(path)).toString())
    if (value !== null && isJsonObject(value)) config = mergeConfigs(config, { ...EMPTY_CONFIG, ...(value as object) })
  }
  return mergeConfigs(config, DEFAULT_CONFIG)
}

async function runGenerators(kustomization: Kustomization, loader: Loader, resources: Resources): Promise<void> {
  const { configMapGenerator = [], secretGenerator = [], generatorOptions } = kustomization
  const run = async (kind: 'ConfigMap' | 'Secret', args: GeneratorArgs): Promise<void> => {
    const options = mergedOptions(args.options, generatorOptions)
    const made = await generate(kind, { ...args, options }, loader)
    try {
      resources.absorb(made)
    } catch (error) {
      throw new KustomizeError(
        `merging from generator ${kind}Generator "${args.name ?? ''}": ${(error as Error).message}`,
        {
          cause: error,
        },
      )
    }
  }
  for (const args of configMapGenerator) await run('ConfigMap', args)
  for (const args of secretGenerator) await run('Secret', args)
}

/** In upstream's order, independent of the file. */
async function transform(kustomization: Kustomization, loader: Loader, into: Accumulator): Promise<void> {
  const { resources, config, openapi } = into
  const { patchesStrategicMerge = [], patches = [], patchesJson6902 = [], replicas = [] } = kustomization
  const patching = { resources, openapi }
  await applyStrategicMerges(patching, patchesStrategicMerge, loader)
  for (const patch of patches) await applyPatch(patching, patch, loader)
  setMetadata(kustomization, into)
  for (const patch of patchesJson6902) await applyJson6902(patching, patch, loader)
  for (const one of replicas) setReplicas(resources, one, config.replicas)
  const { images = [], imageTags = [] } = kustomization
  for (const one of [...images, ...imageTags]) setImages(resources, one, config.images)
  for (const one of await replacementsOf(kustomization, loader)) replace(resources, one)
}

function setMetadata(kustomization: Kustomization, into: Accumulator): void {
  const { resources, config } = into
  const { namespace = '', namePrefix = '', nameSuffix = '', commonLabels = {}, commonAnnotations = {} } = kustomization
  if (namespace !== '') setNamespace(resources, { namespace, specs: config.namespace })
  if (namePrefix !== '') affix(resources, namePrefix, 'prefix', config.namePrefix)
  if (nameSuffix !== '') affix(resources, nameSuffix, 'suffix', config.nameSuffix)
  setLabels(kustomization, into)
  setEntries(resources, commonLabels, config.commonLabels)
  setEntries(resources, commonAnnotations, config.commonAnnotations)
}

function setLabels({ labels = [] }: Kustomization, { resources, config }: Accumulator): void {
  for (const { pairs = {}, fields = [], includeSelectors = false, includeTemplates = false } of labels) {
    let specs = mergeSpecs(fields, config.labels)
    if (includeSelectors) specs = mergeSpecs(specs, config.commonLabels)
    else {
      if (includeTemplates) specs = mergeSpecs(specs, config.templateLabels)
      specs = mergeSpecs(specs, [{ path: 'metadata/labels', create: true }])
    }
    setEntries(resources, pairs, specs)
  }
}

async function replacementsOf({ replacements = [] }: Kustomization, loader: Loader): Promise<Replacement[]> {
  const out: Replacement[] = []
  for (const one of replacements) {
    if (one.path === undefined || one.path === '') {
      out.push(one)
      continue
    }
    const value: JsonValue = parseYaml((await loader.load(one.path)).toString())
    out.push(...((Array.isArray(value) ? value : [value]) as Replacement[]))
  }
  return out
}
