/** The page that creates objects. */
import type { ComponentType, VNode } from 'preact'

import type { CreateViewProps } from '../editor/create-view.tsx'
import { Lazy } from '../parts/lazy.tsx'

export function CreatePage({ cluster }: CreateViewProps): VNode {
  return (
    <section class="page">
      <header class="page-head">
        <h1>Create objects</h1>
      </header>
      <Lazy load={loadView} props={{ cluster }} />
    </section>
  )
}

async function loadView(): Promise<ComponentType<CreateViewProps>> {
  const { CreateView } = await import('../editor/create-view.tsx')
  return CreateView
}
