/** Loads the credential provider plugins of the kubelet from their configuration files. */
import { createHash } from 'node:crypto'
import { access, constants, readdir, stat } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'

import { type ConfigFile, readProviders } from '#kubelet/credentials/provider-config.ts'
import type { KubeletOptions } from '#kubelet/kubelet-options.ts'
import { goQuote } from '#lib/go/text.ts'
import { ProgramError } from '#lib/program.ts'

import type { KubeletProgram } from './program.ts'

/** Throws ProgramError. */
export async function credentialsOf(program: KubeletProgram): Promise<Pick<KubeletOptions, 'credentials'>> {
  const { settings, cwd, env } = program
  const [path, dir] = [settings['image-credential-provider-config'], settings['image-credential-provider-bin-dir']]
  if (path === '' && dir === '') return {}
  const binDir = resolve(cwd, dir)
  try {
    await stat(binDir).catch((cause: Error) => {
      throw new Error(`plugin binary directory ${dir} did not exist`, { cause })
    })
    const files = await filesOf(program, path)
    const providers = readProviders(files, program.isEnabled('KubeletServiceAccountTokenForCredentialProviders'))
    for (const { name } of providers) await checkProgram(join(binDir, name))
    return { credentials: { providers, binDir, env, hash: hashOf(files) } }
  } catch (cause) {
    throw new ProgramError(`Failed to register CRI auth plugins: ${(cause as Error).message}`, { cause })
  }
}

const KINDS = new Set(['.json', '.yaml', '.yml'])

async function filesOf({ cwd, readFile }: KubeletProgram, given: string): Promise<readonly ConfigFile[]> {
  if (given === '') throw new Error('credential provider config path is empty')
  const path = resolve(cwd, given)
  const found = await stat(path).catch((cause: Error) => {
    throw new Error(`unable to access path ${goQuote(given)}: stat ${given}: no such file or directory`, { cause })
  })
  if (!found.isDirectory()) return [{ path: given, source: await readFile(path) }]
  const entries = await readdir(path, { withFileTypes: true })
  const names = entries
    .filter((entry) => !entry.isDirectory() && KINDS.has(extname(entry.name)))
    .map(({ name }) => name)
  if (names.length === 0) throw new Error(`no configuration files found in directory ${goQuote(given)}`)
  return Promise.all(
    names.sort().map(async (name) => ({ path: join(given, name), source: await readFile(join(path, name)) })),
  )
}

async function checkProgram(path: string): Promise<void> {
  await access(path, constants.X_OK).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') throw new Error(`plugin binary executable ${path} did not exist`, { cause })
    throw new Error(`error inspecting binary executable ${path}: ${cause.message}`, { cause })
  })
}

/** A hash over all files, each with its length in front, so that different lists have different hashes. */
function hashOf(files: readonly ConfigFile[]): string {
  const hash = createHash('sha256')
  for (const { source } of files) {
    const bytes = Buffer.from(source)
    const length = Buffer.alloc(8)
    length.writeBigUInt64BE(BigInt(bytes.length))
    hash.update(length).update(bytes)
  }
  return `sha256:${hash.digest('hex')}`
}
