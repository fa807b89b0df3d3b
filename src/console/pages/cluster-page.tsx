/** The overview of a cluster. */
import type { VNode } from 'preact'

export function ClusterPage({ cluster }: { readonly cluster: string }): VNode {
  return (
    <section class="page">
      <h1>{cluster}</h1>
    </section>
  )
}
