/** The user's editor: which one, and a file opened in it. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

import { goQuote } from '#lib/go-text.ts'

import { KubectlError } from '../errors.ts'

type Env = Readonly<Record<string, string | undefined>>

const DEFAULT_EDITOR = 'vi'
const DEFAULT_SHELL = '/bin/bash'

/** The words of the command. What has quotes is left to the user's own shell, as they wrote it for one. */
export function editorWords(env: Env): string[] {
  const editor = env['KUBE_EDITOR'] || env['EDITOR'] || DEFAULT_EDITOR
  if (!/["'\\]/.test(editor) || !editor.includes(' ')) return editor.split(' ')
  return [env['SHELL'] || DEFAULT_SHELL, '-c', editor]
}

export interface Edited {
  readonly text: string
  /** Where it is; whoever asked removes it. */
  readonly file: string
}

/** Throws KubectlError; the file stays where it is then, and its name is in `file` of nothing. */
export async function editText(text: string, suffix: string, env: Env): Promise<Edited> {
  // The random part comes from a folder's name: nobody else can have made that file before.
  const folder = await mkdtemp(join(env['TMPDIR'] || tmpdir(), 'kubectl-edit-'))
  const file = `${folder}${suffix}`
  const inside = join(folder, basename(file))
  await writeFile(inside, text, { mode: 0o600 })
  await rename(inside, file)
  await rmdir(folder)
  await launch(editorWords(env), file, env)
  return { text: await readFile(file, 'utf8'), file }
}

async function launch(words: readonly string[], file: string, env: Env): Promise<void> {
  const isShell = words[1] === '-c' && words.length === 3
  const [program = '', ...args] = isShell ? [words[0], '-c', `${words[2]} ${goQuote(file)}`] : [...words, file]
  await new Promise<void>((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'inherit', env: { ...env } })
    child.once('error', (cause: NodeJS.ErrnoException) => {
      reject(new KubectlError(`unable to launch the editor ${goQuote(words.join(' '))}`, { cause }))
    })
    child.once('exit', (code) => {
      if (code === 0) resolve()
      else reject(new KubectlError(`there was a problem with the editor ${goQuote(words.join(' '))}`))
    })
  })
}

export async function removeFile(file: string): Promise<void> {
  if (dirname(file) !== '.') await rm(file, { force: true })
}
