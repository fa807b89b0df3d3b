/** Checks that each flag of kube-controller-manager is read, or is listed as having no effect. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'

import { MANAGER_FLAGS } from '#cmd/controller-manager/flags.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { controllerSettings, workersOf } from '#controllers/settings.ts'
import type { FlagGroup } from '#lib/flags/flag-support.ts'

const SRC = join(import.meta.dirname, '..', 'src')
/** Where flags are declared and shown, which is not where they are read; and what is not of the manager. */
const ELSEWHERE = /(?:flags|settings|configz|fixture|test)\.ts$|^(?:scheduler|kubelet|testing)\//

it('kube-controller-manager reads each of its flags or lists it as having no effect', () => {
  const files = globSync('**/*.ts', { cwd: SRC }).map((file) => file.replaceAll('\\', '/'))
  const read = [...files.filter((file) => !ELSEWHERE.test(file)), 'lib/log/flags.ts']
  const text = read.map((file) => readFileSync(join(SRC, file), 'utf8')).join('\n')
  const words = new Set(text.match(/[\w-]+/g))
  const flags = Object.values(MANAGER_FLAGS).flatMap((group) => Object.entries(group as FlagGroup))
  const ignored = flags.filter(([name, { unsupported, idle }]) => {
    const ofSigner = /^(cluster-signing-).+(-cert-file|-key-file)$/.exec(name)
    const isRead = words.has(name) || (ofSigner !== null && ofSigner.slice(1).every((part) => text.includes(part)))
    return !isRead && unsupported === undefined && idle === undefined && !decidesWorkers(name)
  })
  assert.deepEqual(
    ignored.map(([name]) => name),
    [],
  )
})

/** Whether a controller has as many workers as the flag says. */
function decidesWorkers(flag: string): boolean {
  const settings = { ...controllerSettings(), [flag]: 4711 }
  return CONTROLLERS.some(({ name }) => workersOf(name, settings) === 4711)
}
