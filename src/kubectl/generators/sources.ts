/** Reads keys and values of config maps and secrets from literals, files, directories and env files. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'

import { goQuote } from '#lib/go/text.ts'
import { relaxedEnvVarName } from '#meta/validation/names.ts'

import { KubectlError } from '../errors.ts'

interface Sources {
  readonly flags: {
    readonly 'from-file': readonly string[]
    readonly 'from-literal': readonly string[]
    readonly 'from-env-file': readonly string[]
  }
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** In upstream's order: literals, files, env files. `what`: `config` or `secret`. Throws KubectlError. */
export async function entriesFrom({ flags, cwd, env }: Sources, what: string): Promise<[string, Buffer][]> {
  const { 'from-literal': literals, 'from-file': files, 'from-env-file': envFiles } = flags
  if (envFiles.length > 0 && (files.length > 0 || literals.length > 0)) {
    throw new KubectlError('from-env-file cannot be combined with from-file or from-literal')
  }
  const entries: [string, Buffer][] = literals.map(literalOf)
  for (const source of files) entries.push(...(await fileEntries(source, cwd)))
  for (const file of envFiles) entries.push(...(await envEntries(file, { cwd, env, what })))
  return entries
}

function literalOf(source: string): [string, Buffer] {
  const at = source.indexOf('=')
  if (at <= 0) throw new KubectlError(`invalid literal source ${source}, expected key=value`)
  const value = source.slice(at + 1)
  const isQuoted = value.length >= 2 && /^(['"])[^]*\1$/.test(value)
  return [source.slice(0, at), Buffer.from(isQuoted ? value.slice(1, -1) : value)]
}

async function fileEntries(source: string, cwd: string): Promise<[string, Buffer][]> {
  const { key, path } = splitSource(source)
  const info = await stat(resolve(cwd, path)).catch((cause: NodeJS.ErrnoException) => {
    throw new KubectlError(`error reading ${path}: ${reasonOf(cause)}`, { cause })
  })
  if (!info.isDirectory()) return [[key, await readFile(resolve(cwd, path))]]
  if (source.includes('=')) throw new KubectlError('cannot give a key name for a directory path')
  const names = (await readdir(resolve(cwd, path), { withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort()
  return Promise.all(
    names.map(async (name): Promise<[string, Buffer]> => [name, await readFile(resolve(cwd, join(path, name)))]),
  )
}

function splitSource(source: string): { key: string; path: string } {
  const parts = source.split('=')
  if (parts.length === 1) return { key: basename(source), path: source }
  if (source.startsWith('=')) throw new KubectlError(`key name for file path ${source.slice(1)} missing`)
  if (source.endsWith('=')) throw new KubectlError(`file path for key name ${source.slice(0, -1)} missing`)
  if (parts.length > 2) throw new KubectlError("key names or file paths cannot contain '='")
  return { key: parts[0] as string, path: parts[1] as string }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  return code === 'ENOENT' ? 'no such file or directory' : message
}

async function envEntries(
  file: string,
  { cwd, env, what }: Pick<Sources, 'cwd' | 'env'> & { readonly what: string },
): Promise<[string, Buffer][]> {
  const info = await stat(resolve(cwd, file)).catch((cause: NodeJS.ErrnoException) => {
    throw new KubectlError(`error reading ${file}: ${reasonOf(cause)}`, { cause })
  })
  if (info.isDirectory()) throw new KubectlError(`env ${what} file cannot be a directory`)
  const text = (await readFile(resolve(cwd, file), 'utf8')).replace(/^\ufeff/, '')
  return text.split('\n').flatMap((raw): [string, Buffer][] => {
    const line = raw.replace(/\r$/, '').trimStart()
    if (line === '' || line.startsWith('#')) return []
    const at = line.indexOf('=')
    const key = at < 0 ? line : line.slice(0, at)
    const problems = relaxedEnvVarName(key)
    if (problems.length > 0) throw new KubectlError(`${goQuote(key)} is not a valid key name: ${problems.join(';')}`)
    // A name without a value takes the value from the environment.
    const value = at < 0 ? env[key] : line.slice(at + 1)
    return value === undefined ? [] : [[key, Buffer.from(value)]]
  })
}
