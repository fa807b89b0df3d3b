/** Deletes an object, and says before what goes with it. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { Form } from '../forms/form.tsx'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { countDependants, type DependantCount } from '../related/dependants.ts'
import type { ActionFormProps } from './action-form.ts'
import { type Propagation, remove } from './plans.ts'
import { runRequest } from './run-action.ts'

const CHOICES: readonly (readonly [policy: Propagation, text: string])[] = [
  ['Background', 'Delete it now, and what it owns after it'],
  ['Foreground', 'Delete what it owns first; it stays until then'],
  ['Orphan', 'Keep what it owns'],
]

export function DeleteForm({ cluster, kind, object, close, done }: ActionFormProps): VNode {
  const [counts, setCounts] = useState<readonly DependantCount[]>()
  const { finalizers = [], uid } = object.metadata
  useEffect(() => {
    const stop = new AbortController()
    countDependants(cluster, object, stop.signal).then(setCounts, () => setCounts([]))
    return () => stop.abort()
  }, [uid])
  const submit = async ({ propagation = '' }: Readonly<Record<string, string>>): Promise<void> => {
    const policy = CHOICES.find(([one]) => one === propagation)?.[0] ?? 'Background'
    await runRequest(cluster, remove({ kind, object }, policy))
    done()
  }
  return (
    <Form label="Delete" action="Delete" submit={submit} cancel={close} isDangerous>
      <p>{goingText(kubernetesKind(object), counts)}</p>
      {finalizers.length > 0 && (
        <p>
          <bdi>{`It stays until its finalizers are removed: ${finalizers.join(', ')}.`}</bdi>
        </p>
      )}
      <label class="field">
        Objects that it owns
        <select name="propagation">
          {CHOICES.map(([policy, text]) => (
            <option key={policy} value={policy}>
              {text}
            </option>
          ))}
        </select>
      </label>
    </Form>
  )
}

function goingText(kind: string, counts: readonly DependantCount[] | undefined): string {
  if (kind === 'Namespace') return 'Everything in the namespace goes with it.'
  if (kind === 'CustomResourceDefinition') return 'All objects of this kind go with it.'
  if (counts === undefined) return 'Counting what it owns …'
  const owned = counts
    .filter(({ count }) => count > 0)
    .map(({ kind: one, count }) => `${count} ${one}${count === 1 ? '' : 's'}`)
  return owned.length === 0 ? 'No other objects go with it.' : `It owns ${owned.join(', ')}.`
}
