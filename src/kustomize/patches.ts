/** Applies strategic merge and JSON patches, from files or inline, by id or selector. */
import { goQuote } from '#lib/go/text.ts'
import { applyJsonPatch } from '#lib/json/patch.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import { idText, KustomizeError, misconfigured } from './ids.ts'
import type { Loader } from './loader.ts'
import { mergeSchemaOf } from './merge-schema.ts'
import { mergeStrategically } from './merge.ts'
import { parseResources, type Resource, type Resources } from './resource.ts'
import { type ResourceSelector, selected } from './selectors.ts'

export interface Patch {
  readonly path?: string
  readonly patch?: string
  readonly target?: ResourceSelector
  readonly options?: { readonly allowNameChange?: boolean; readonly allowKindChange?: boolean }
}

interface PatchContext {
  readonly resources: Resources
  /** An OpenAPI document with merge keys of custom kinds. */
  readonly openapi: JsonObject | undefined
}

interface LoadedPatch {
  readonly source: string
  readonly text: string
}

async function load({ path = '', patch = '' }: Patch, loader: Loader): Promise<LoadedPatch> {
  if (path === '') return { source: `[patch: ${goQuote(patch.trim())}]`, text: patch.trim() }
  const text = await loader.load(path).catch((error: unknown) => {
    throw new KustomizeError(`failed to get the patch file from path(${path}): ${(error as Error).message}`, {
      cause: error,
    })
  })
  return { source: `[path: ${goQuote(path)}]`, text: text.toString() }
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}

/** The operations of a JSON patch; undefined if it is none. Only here does `n` mean false. */
function operationsOf(text: string): JsonValue[] | undefined {
  const value = attempt(() => parseYaml(text))
  return Array.isArray(value) ? value : undefined
}

/** Throws KustomizeError. */
export async function applyPatch(patching: PatchContext, patch: Patch, loader: Loader): Promise<void> {
  const { source, text } = await load(patch, loader).catch((error: unknown) => {
    throw misconfigured('PatchTransformer', patch, (error as Error).message)
  })
  const merging = attempt(() => parseResources(text))
  const operations = merging === undefined ? operationsOf(text) : undefined
  if (merging === undefined && operations === undefined) {
    throw misconfigured('PatchTransformer', patch, `unable to parse SM or JSON patch from ${source}`)
  }
  if (merging !== undefined) return mergeAll(patching, patch, { source, merging })
  const { target } = patch
  if (target === undefined) throw new KustomizeError(`must specify a target for JSON patch ${source}`)
  for (const resource of selected(patching.resources, target)) patchByOperations(resource, operations as JsonValue[])
}

function mergeAll(
  { resources, openapi }: PatchContext,
  { target, options }: Patch,
  { source, merging }: { readonly source: string; readonly merging: readonly Resource[] },
): void {
  const merge = (resource: Resource, patch: Resource): void => mergeOne(resource, patch, { openapi, ...options })
  if (target !== undefined) {
    if (merging.length > 1) {
      throw new KustomizeError(
        `Multiple Strategic-Merge Patches in one \`patches\` entry is not allowed to set \`patches.target\` field: ${source}`,
      )
    }
    const [patch] = merging as [Resource]
    for (const resource of selected(resources, target)) {
      const copy = patch.copy()
      const { apiVersion = '' } = resource.value
      copy.value = { ...copy.value, apiVersion, kind: patch.value.kind ?? '' }
      merge(resource, copy)
    }
  } else {
    for (const patch of merging) {
      let resource: Resource
      try {
        resource = resources.byId(patch.originalId)
      } catch (error) {
        throw new KustomizeError(
          `no resource matches strategic merge patch ${goQuote(idText(patch.originalId))}: ${(error as Error).message}`,
          { cause: error },
        )
      }
      merge(resource, patch)
    }
  }
  dropEmpty(resources)
}

/** Removes resources that a patch deleted. */
function dropEmpty(resources: Resources): void {
  resources.list = resources.list.filter(({ value }) => Object.keys(value).length > 0)
}

interface MergeOptions {
  readonly openapi: JsonObject | undefined
  readonly allowNameChange?: boolean
  readonly allowKindChange?: boolean
}

function mergeOne(resource: Resource, patch: Resource, options: MergeOptions): void {
  const { name, namespace } = resource
  const { kind = '' } = resource.value
  if (options.allowNameChange === true || options.allowKindChange === true) resource.remember()
  const schema = mergeSchemaOf(resource.gvk, options.openapi)
  const merged = mergeStrategically(resource.value, structuredClone(patch.value), schema)
  if (merged === undefined || merged === null || !isJsonObject(merged)) {
    resource.value = {}
    return
  }
  resource.value = merged
  if (options.allowKindChange !== true) resource.value.kind = kind
  if (options.allowNameChange !== true) resource.setMetadata('name', name)
  resource.setMetadata('namespace', namespace)
}

function patchByOperations(resource: Resource, operations: JsonValue[]): void {
  resource.remember()
  resource.value = applyJsonPatch(resource.value, operations) as JsonObject
}

/** `patchesStrategicMerge`: each entry is an inline patch or a file. */
export async function applyStrategicMerges(
  patching: PatchContext,
  paths: readonly string[],
  loader: Loader,
): Promise<void> {
  const patches: Resource[] = []
  for (const path of paths) {
    const inline = attempt(() => parseResources(path))
    patches.push(...(inline ?? parseResources((await loader.load(path)).toString())))
  }
  for (const patch of patches) {
    mergeOne(patching.resources.byId(patch.originalId), patch, { openapi: patching.openapi })
    dropEmpty(patching.resources)
  }
}

/** `patchesJson6902`. */
export async function applyJson6902({ resources }: PatchContext, patch: Patch, loader: Loader): Promise<void> {
  const { target, path = '', patch: inline = '' } = patch
  if (target === undefined) throw new KustomizeError('must specify the target name')
  if (path === '' && inline === '') throw new KustomizeError('must specify a json patch file path or inline patch')
  const text = path === '' ? inline : (await loader.load(path)).toString()
  const operations = operationsOf(text)
  if (operations === undefined) throw new KustomizeError(`unable to parse JSON patch: ${text}`)
  const { kind = '', group = '', version = '', name = '', namespace = '' } = target
  const resource = resources.byId({ kind, group, version, name, namespace })
  patchByOperations(resource, operations)
}
