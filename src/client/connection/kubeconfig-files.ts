/** Finds the kubeconfig files of a user: a given file, those of KUBECONFIG, or `~/.kube/config`. */
import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'

/** The files in the order in which they are read. They need not exist. */
export function kubeconfigFiles(explicit: string, env: Readonly<Record<string, string | undefined>>): string[] {
  if (explicit !== '') return [explicit]
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter(Boolean)
  return listed.length > 0 ? [...new Set(listed)] : [join(env['HOME'] ?? homedir(), '.kube', 'config')]
}

/** The file that receives new entries: the first that exists, or else the last. */
export async function kubeconfigForNewEntries(files: readonly string[], cwd: string): Promise<string> {
  for (const file of files) if (await exists(resolve(cwd, file))) return file
  return files.at(-1) ?? ''
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
