/** Asks the API server what the user of the page may do in a namespace. */
import type { VNode } from 'preact'

import type { SelfSubjectRulesReview } from '#apis/authorization/v1.ts'
import type { PolicyRule } from '#apis/rbac/v1.ts'

import { clusterPath } from '../api/kinds.ts'
import { sendForJson } from '../api/request.ts'
import { LoadedView } from '../parts/loaded-view.tsx'
import { NamespaceSelect } from '../parts/namespace-select.tsx'
import { Notice } from '../parts/notice.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { RulesTable } from './rules-table.tsx'

interface OwnRulesFound {
  readonly rules: readonly PolicyRule[]
  /** Why the rules are not all. */
  readonly missing: string | undefined
}

async function loadRules(cluster: string, namespace: string, signal: AbortSignal): Promise<OwnRulesFound> {
  const path = clusterPath(cluster, '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews')
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } }
  const { status } = await sendForJson<SelfSubjectRulesReview>(path, { method: 'POST', body, signal })
  const { resourceRules, nonResourceRules, incomplete, evaluationError } = status ?? {}
  return {
    rules: [...(resourceRules ?? []), ...(nonResourceRules ?? [])],
    missing: evaluationError ?? (incomplete ? 'An authorizer of the cluster lists no rules.' : undefined),
  }
}

export interface OwnRulesProps {
  readonly cluster: string
  /** Empty: `default`. */
  readonly namespace: string
}

export function OwnRules({ cluster, namespace }: OwnRulesProps): VNode {
  const inside = namespace === '' ? 'default' : namespace
  const found = useLoaded(`${cluster}/${inside}`, (signal) => loadRules(cluster, inside, signal))
  return (
    <>
      <form class="questions" aria-label="What may I" onSubmit={(event) => event.preventDefault()}>
        <label class="field">
          Namespace
          <NamespaceSelect cluster={cluster} namespace={inside} />
        </label>
      </form>
      <LoadedView of={found} name="rules">
        {({ rules, missing }) => (
          <>
            {rules.length === 0 ? (
              <Notice title="You may do nothing here" text={`The API server lists no rules for you in ${inside}.`} />
            ) : (
              <RulesTable label={`Your rules in ${inside}`} rules={rules} />
            )}
            {missing !== undefined && <p class="words words-busy">{`These may not be all rules. ${missing}`}</p>}
            <p class="muted">
              The API server answers this, with all its authorizers that can list rules. They include the rules that
              hold in the whole cluster.
            </p>
          </>
        )}
      </LoadedView>
    </>
  )
}
