/** Chooses the user's editor and opens a file in it. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'

type Env = Readonly<Record<string, string | undefined>>

const DEFAULT_EDITOR = 'vi'
const DEFAULT_SHELL = '/bin/bash'

/** The words of the command. A command with quotes runs in the user's shell. */
export function editorWords(env: Env): string[] {
  const editor = env['KUBE_EDITOR'] || env['EDITOR'] || DEFAULT_EDITOR
  if (!/["'\\]/.test(editor) || !editor.includes(' ')) return editor.split(' ')
  return [env['SHELL'] || DEFAULT_SHELL, '-c', editor]
}

export interface EditorResult {
  readonly text: string
  /** The path of the file; the caller removes it. */
  readonly file: string
}

/** Throws KubectlError and keeps the file. */
export async function editText(text: string, suffix: string, env: Env): Promise<EditorResult> {
  // The random part comes from a new folder, so no other user can have created the file.
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
