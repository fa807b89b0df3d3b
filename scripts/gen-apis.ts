/**
 * Generates `src/apis` from the API facts of Kubernetes: `npm run gen` writes the files, `npm run gen:check` fails if
 * they differ. The facts are not in the repository; without them the check is skipped with a message.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

import { hasFacts, loadFacts } from './gen-apis/facts.ts'
import { generate } from './gen-apis/generate.ts'

const root = resolve(import.meta.dirname, '..')
const target = join(root, 'src', 'apis')
const facts = process.env['HYPERKUBE_API_FACTS'] ?? resolve(root, '..', 'shared', 'kubernetes-api')
const check = process.argv.includes('--check')

process.exitCode = main()

function main(): number {
  if (!hasFacts(facts)) {
    const reason = `no API facts in "${facts}"; set HYPERKUBE_API_FACTS to their directory`
    console.error(check ? `gen:check skipped: ${reason}` : `Cannot generate: ${reason}`)
    return check ? 0 : 1
  }
  const files = generate(loadFacts(facts))
  const differing = [...files].filter(([path, text]) => readIfThere(join(target, path)) !== text).map(([path]) => path)
  const stale = listGenerated().filter((path) => !files.has(path))
  if (!check) write(files, differing, stale)
  const changed = [...differing, ...stale]
  const bytes = [...files.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  console.log(`${files.size} files, ${Math.round(bytes / 1024)} KiB, ${changed.length} ${check ? 'differ' : 'changed'}`)
  if (!check || changed.length === 0) return 0
  console.error(`Run "npm run gen" and commit:\n${changed.map((path) => `  src/apis/${path}`).join('\n')}`)
  return 1
}

function write(files: ReadonlyMap<string, string>, differing: readonly string[], stale: readonly string[]): void {
  for (const path of differing) {
    mkdirSync(dirname(join(target, path)), { recursive: true })
    writeFileSync(join(target, path), files.get(path) ?? '')
  }
  for (const path of stale) rmSync(join(target, path))
}

/** The files of earlier runs: everything in folders of `src/apis`. Hand-written files are directly in it. */
function listGenerated(): string[] {
  const paths = readdirSync(target, { recursive: true, withFileTypes: true })
  return paths
    .filter((entry) => entry.isFile() && resolve(entry.parentPath) !== target)
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(target.length + 1)
        .replaceAll('\\', '/'),
    )
}

function readIfThere(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}
