/**
 * `node test/images/main.ts --into DIR [NAME...]`: builds image archives without a registry, for `hyperkube image
 * load`. The same content gives the same bytes.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { type Architecture, type ArchiveRecipe, CATALOG, type Tools } from './catalog.ts'
import { writeArchive } from './docker-archive.ts'
import { type WrittenLayer, writeLayer } from './layer.ts'

/** Where the archives are. Rejects for a name that is not in the catalog, and when something it is made of cannot be had. */
export async function makeImages(into: string, names: readonly string[], say: Tools['say']): Promise<string[]> {
  mkdirSync(into, { recursive: true })
  const files: string[] = []
  for (const name of names.length > 0 ? names : Object.keys(CATALOG)) {
    const recipe = CATALOG[name]
    if (recipe === undefined)
      throw new Error(`There is no image "${name}"; there are: ${Object.keys(CATALOG).join(', ')}`)
    files.push(await makeArchive(recipe, join(into, `${name}.tar`), say))
  }
  return files
}

/** Where it is. */
export async function makeArchive(recipe: ArchiveRecipe, file: string, say: Tools['say']): Promise<string> {
  const tools = { architecture: architecture(), say }
  const folder = mkdtempSync(`${file}.layers-`)
  try {
    const layers = new Map<string, WrittenLayer>()
    for (const [layer, files] of Object.entries(recipe.layers))
      layers.set(layer, await writeLayer(await files(tools), join(folder, layer)))
    const images = recipe.images.map((image) => ({
      ...image,
      architecture: tools.architecture,
      layers: image.layers.flatMap((layer) => layers.get(layer) ?? []),
    }))
    await writeArchive(images, file)
    return file
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function architecture(): Architecture {
  if (process.arch === 'x64') return 'amd64'
  if (process.arch === 'arm64') return 'arm64'
  throw new Error(`Images cannot be made on ${process.arch} yet`)
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({ options: { into: { type: 'string' } }, allowPositionals: true })
  if (values.into === undefined) {
    process.stderr.write(`Say with --into where the archives go. Images: ${Object.keys(CATALOG).join(', ')}\n`)
    process.exitCode = 1
  } else {
    const say = (line: string): void => void process.stderr.write(`${line}\n`)
    const files = await makeImages(resolve(values.into), positionals, say)
    process.stdout.write(files.map((file) => `${file}\n`).join(''))
  }
}
