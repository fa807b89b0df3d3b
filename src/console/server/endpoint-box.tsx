/**
 * The authorized endpoint of a cluster: a way to its API server that does not lead through this server. Users who may patch
 * the Cluster in the management cluster change it here.
 */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { useMay } from '../access/use-may.ts'
import { clusterPath, type KindAddress, objectPath } from '../api/kinds.ts'
import { send } from '../api/request.ts'
import { AreaField } from '../forms/area-field.tsx'
import { CheckField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import type { ClusterTabProps } from './cluster-tabs.ts'
import { type AuthorizedEndpoint, LOCAL_CLUSTER } from './clusters.ts'

const KIND: KindAddress = { group: 'management.hyperkube.io', version: 'v1', plural: 'clusters' }

export function EndpointBox({ cluster }: ClusterTabProps): VNode {
  const [isOpen, setIsOpen] = useState(false)
  const mayPatch = useMay(LOCAL_CLUSTER, { verb: 'patch', kind: KIND, object: { metadata: cluster.metadata } })
  const { authorizedEndpoint: endpoint } = cluster.spec
  return (
    <section class="box">
      <h2>Authorized endpoint</h2>
      <p>{describe(endpoint)}</p>
      {mayPatch ? (
        <button type="button" onClick={() => setIsOpen(true)}>
          Change …
        </button>
      ) : (
        <p class="muted">Administrators can change it.</p>
      )}
      {isOpen && <EndpointDialog cluster={cluster} close={() => setIsOpen(false)} />}
    </section>
  )
}

function describe(endpoint: AuthorizedEndpoint | undefined): string {
  if (endpoint?.enabled !== true) return 'Off: kubeconfigs lead through this server only.'
  const places = endpoint.fqdn === undefined ? (endpoint.addresses ?? []) : [endpoint.fqdn]
  return `Kubeconfigs also lead to ${places.join(', ')}, which works while this server is away.`
}

function EndpointDialog({ cluster, close }: ClusterTabProps & { readonly close: () => void }): VNode {
  const { metadata, spec } = cluster
  const { enabled = false, fqdn = '', addresses = [], certificateAuthority = '' } = spec.authorizedEndpoint ?? {}
  const path = clusterPath(LOCAL_CLUSTER, objectPath(KIND, { name: metadata.name ?? '' }))
  const submit = async (fields: Readonly<Record<string, string>>): Promise<void> => {
    const body = { spec: { authorizedEndpoint: endpointOf(fields) } }
    await send(path, { method: 'PATCH', type: 'application/merge-patch+json', body })
    close()
  }
  return (
    <Dialog title={`Authorized endpoint of ${spec.displayName}`} close={close}>
      <Form label="Authorized endpoint" action="Save" submit={submit} cancel={close}>
        <p>
          The API servers of the cluster must check tokens with <code>hyperkube kube-api-auth</code>, or the kubeconfigs
          get 401.
        </p>
        <CheckField name="enabled" label="Kubeconfigs lead to the API servers too" isChecked={enabled} />
        <Field name="fqdn" label="Name of a load balancer, with an optional port" value={fqdn} isOptional />
        <AreaField name="addresses" label="Or addresses of API servers, one in a line" value={addresses.join('\n')} />
        <AreaField
          name="certificateAuthority"
          label="Authority of the API servers (PEM); empty: the public authorities"
          value={certificateAuthority}
        />
      </Form>
    </Dialog>
  )
}

/** Null removes a field by a merge patch. */
function endpointOf({
  enabled,
  fqdn = '',
  addresses = '',
  certificateAuthority = '',
}: Readonly<Record<string, string>>): object {
  const lines = addresses.split(/[\s,]+/).filter(Boolean)
  return {
    enabled: enabled !== undefined,
    fqdn: fqdn.trim() === '' ? null : fqdn.trim(),
    addresses: lines.length === 0 ? null : lines,
    certificateAuthority: certificateAuthority.trim() === '' ? null : `${certificateAuthority.trim()}\n`,
  }
}
