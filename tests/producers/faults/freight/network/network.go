// Package network finds ways through a railway network.
package network

// track leads to a town; its length is in km.
type track struct {
	to, length, grade int
}

// Network is a grid of towns in which some tracks are missing.
type Network struct {
	tracks [][]track
	queue  queue
	best   []int
	from   []int
}

// Route is a way through towns.
type Route struct {
	Towns  []int
	Length int
}

// Build lays the tracks.
func Build(columns, rows int) *Network {
	towns := columns * rows
	n := &Network{tracks: make([][]track, towns), best: make([]int, towns), from: make([]int, towns)}
	random := uint32(11)
	join := func(a, b int) {
		random = random*1664525 + 1013904223
		if random>>8%7 == 0 {
			return
		}
		length, grade := 3+int(random>>12%40), int(random>>18%30)
		n.tracks[a] = append(n.tracks[a], track{b, length, grade})
		n.tracks[b] = append(n.tracks[b], track{a, length, grade})
	}
	for town := range towns {
		if town%columns > 0 {
			join(town, town-1)
		}
		if town >= columns {
			join(town, town-columns)
		}
	}
	return n
}

// Towns returns the number of towns.
func (n *Network) Towns() int { return len(n.tracks) }

// Find finds the cheapest way (Dijkstra 1959).
func (n *Network) Find(from, to int) Route {
	n.reset()
	n.best[from] = 0
	n.queue.push(entry{from, 0})
	for len(n.queue) > 0 {
		next := n.queue.pop()
		if next.town == to {
			break
		}
		if next.cost == n.best[next.town] {
			n.relax(next)
		}
	}
	return n.trace(from, to)
}

func (n *Network) reset() {
	n.queue = n.queue[:0]
	for town := range n.best {
		n.best[town], n.from[town] = 1<<40, -1
	}
}

// relax updates the costs along all tracks from a town.
func (n *Network) relax(at entry) {
	for _, track := range n.tracks[at.town] {
		cost := at.cost + cost(track)
		if cost < n.best[track.to] {
			n.best[track.to], n.from[track.to] = cost, at.town
			n.queue.push(entry{track.to, cost})
		}
	}
}

// cost returns the energy for a track: uphill, speed falls kilometre by kilometre.
func cost(track track) int {
	energy, speed := 0, 80
	for range track.length / 2 {
		energy += 4 + speed*speed/1600
		if speed > 30 {
			speed -= track.grade / 8
		}
	}
	return energy
}

func (n *Network) trace(from, to int) Route {
	route := Route{Length: n.best[to]}
	for town := to; town != from && town >= 0; town = n.from[town] {
		route.Towns = append(route.Towns, town)
	}
	return route
}

type entry struct{ town, cost int }

// queue is a heap of the towns still to visit.
type queue []entry

func (q *queue) push(e entry) {
	*q = append(*q, e)
	q.up(len(*q) - 1)
}

func (q *queue) pop() entry {
	top, last := (*q)[0], len(*q)-1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.down(0)
	return top
}

func (q queue) up(at int) {
	for at > 0 && q[at].cost < q[(at-1)/2].cost {
		q[at], q[(at-1)/2] = q[(at-1)/2], q[at]
		at = (at - 1) / 2
	}
}

func (q queue) down(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(q); child++ {
			if q[child].cost < q[least].cost {
				least = child
			}
		}
		if least == at {
			return
		}
		q[at], q[least] = q[least], q[at]
		at = least
	}
}
